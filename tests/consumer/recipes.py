# recipes.py DIRECTORY VERSION
# vcpkg.json and conanfile.py are well formed and have this version. Neither tool is run: of Conan there is a stand-in
# with as much of it as the recipe needs for telling its version.
import json
import pathlib
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
