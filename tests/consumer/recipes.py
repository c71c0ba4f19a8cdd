# recipes.py DIRECTORY VERSION
# vcpkg.json and conanfile.py are well formed, have this version, and the targets of the CMake package. Neither tool is
# run: of Conan there is a stand-in with as much of it as the recipe needs for telling these.
import collections
import json
import pathlib
import re
import sys
import types

root, version = pathlib.Path(sys.argv[1]), sys.argv[2]
sys.dont_write_bytecode = True


def stand_in(name, **members):
    sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[name]).update(members)


stand_in("conan", ConanFile=type("ConanFile", (), {"recipe_folder": str(root)}))
stand_in("conan.tools")
stand_in("conan.tools.build", check_min_cppstd=None)
stand_in("conan.tools.files", copy=None, load=lambda recipe, path: pathlib.Path(path).read_text())

sys.path.insert(0, str(root))
import conanfile  # noqa: E402

recipe = conanfile.KeyfoldConan()
recipe.set_version()
manifest = json.loads((root / "vcpkg.json").read_text())

for name, found in (("conanfile.py", recipe.version), ("vcpkg.json", manifest["version-semver"])):
    if found != version:
        sys.exit(f"{name} says version {found}, include/keyfold/version.hpp says {version}")


class Component:
    def __init__(self):
        self.properties = {}
        self.requires = []
        self.set_property = self.properties.__setitem__


def components(**boost_options):
    """What the recipe makes of a Boost with these options: the libraries that each CMake target requires."""
    made = collections.defaultdict(Component)
    boost = types.SimpleNamespace(options=types.SimpleNamespace(get_safe=boost_options.get))
    recipe.cpp_info = types.SimpleNamespace(components=made, set_property=lambda *_: None)
    recipe.dependencies = {"boost": boost}
    recipe.settings = types.SimpleNamespace(os="Linux")
    recipe.package_info()
    return {made[name].properties["cmake_target_name"]: made[name].requires for name in list(made)}


def expect(found, expected):
    if found != expected:
        sys.exit(f"conanfile.py makes {found}, expected {expected}")


core = {"keyfold::keyfold": ["boost::headers"]}
serialization = {"keyfold::serialization": ["core", "boost::serialization"]}
json_lines = {"keyfold::json": ["core", "boost::json"]}
expect(components(), core | serialization | json_lines)
expect(components(without_json=True), core | serialization)
expect(components(without_serialization=True), core | json_lines)
expect(components(header_only=True), core)

# The targets are those that the CMake package has, and the optional ones the features of the manifest.
exported = set(re.findall(r"keyfold::\w+(?= ALIAS)", (root / "CMakeLists.txt").read_text()))
expect(components().keys(), exported)
features = {f"keyfold::{feature}" for feature in manifest["features"]} - {"keyfold::tests"}
expect(components().keys() - core.keys(), features)
