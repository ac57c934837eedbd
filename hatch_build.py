"""The build hook: compiles the native engine into the package where a C compiler is found, and goes on without one."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


def builder(root: Path) -> ModuleType:
    """regard/native/build.py, by its path: the package's dependencies are not installed yet."""
    path = root / "regard" / "native" / "build.py"
    spec = importlib.util.spec_from_file_location("regard_native_build", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class NativeHook(BuildHookInterface[Any]):
    """For wheels, editable ones too; a source distribution has the sources alone."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        native = builder(Path(self.root))
        try:
            library: Path = native.build()
        except native.BuildError as error:
            self.app.display_warning(f"regard: without the native engine, which only makes it faster: {error}")
            native.LIBRARY.unlink(missing_ok=True)  # of other sources
            return
        build_data["pure_python"], build_data["tag"] = False, native.wheel_tag()
        build_data["artifacts"].append(library.relative_to(self.root).as_posix())
        self.app.display_info(f"regard: native engine built by {' '.join(native.find_compiler())}")
