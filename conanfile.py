import os
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.files import copy, load

required_conan_version = ">=2.0"


class KeyfoldConan(ConanFile):
    name = "keyfold"
    description = "In-memory keyed upserts: SQL MERGE for plain C++ structs"
    license = "BSL-1.0"
    topics = ("header-only", "merge", "upsert", "table", "change-data-capture")
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    exports = "include/keyfold/version.hpp"
    exports_sources = "include/*", "LICENSE"
    no_copy_source = True

    def set_version(self):
        header = load(self, os.path.join(self.recipe_folder, "include", "keyfold", "version.hpp"))
        self.version = ".".join(re.findall(r"#define KEYFOLD_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header))

    def requirements(self):
        self.requires("boost/[>=1.81 <2]", transitive_headers=True, transitive_libs=True)

    def validate(self):
        check_min_cppstd(self, 20)

    def package_id(self):
        self.info.clear()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        copy(self, "*.hpp", os.path.join(self.source_folder, "include"), os.path.join(self.package_folder, "include"))

    def package_info(self):
        self.cpp_info.set_property("cmake_target_name", "keyfold::all")
        core = self.cpp_info.components["core"]
        core.set_property("cmake_target_name", "keyfold::keyfold")
        core.requires = ["boost::headers"]
        components = [core]
        if not self.dependencies["boost"].options.get_safe("header_only"):
            for library in ("serialization", "json"):
                component = self.cpp_info.components[library]
                component.set_property("cmake_target_name", "keyfold::" + library)
                component.requires = ["core", "boost::" + library]
                components.append(component)
            if self.settings.os in ("Linux", "FreeBSD"):
                self.cpp_info.components["serialization"].system_libs = ["pthread"]
        for component in components:
            component.bindirs = []
            component.libdirs = []
