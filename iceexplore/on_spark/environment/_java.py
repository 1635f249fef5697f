"""Java, which classic Spark runs on: which one Spark would take, and how to get one."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from iceexplore.errors import MissingDependencyError

__all__ = ["JAVA_ADVICE", "check_java", "java_command", "java_version"]

#: Spark's documentation, "Overview": 3.5 runs on Java 8, 11 and 17, 4.0 and 4.1 on 17 and 21.
_OLDEST = {(3, 5): 8, (4, 0): 17, (4, 1): 17}
#: Iceberg 1.11 is compiled for Java 17.
_OLDEST_ICEBERG = 17
_SECONDS = 60

#: How to get a Java that every Spark here, and Iceberg's runtime, work on.
JAVA_ADVICE = (
    "Install a whole Java 17 (Debian, Ubuntu: apt-get install openjdk-17-jre-headless; macOS: brew install openjdk@17; "
    "Windows: winget install EclipseAdoptium.Temurin.17.JRE; conda install openjdk=17), and let JAVA_HOME name its "
    "folder if java is not on the PATH. What needs no Spark works without Java."
)


def java_command() -> str | None:
    """The Java that Spark's launcher takes: ``$JAVA_HOME/bin/java``, else the first on the PATH; None without one."""
    home = os.environ.get("JAVA_HOME")
    if not home:
        return shutil.which("java")
    for name in ("java", "java.exe"):
        found = Path(home, "bin", name)
        if found.is_file() and os.access(found, os.X_OK):
            return str(found)
    return None


def java_version(command: str) -> int | None:
    """The major version of a Java (8 says ``1.8``); None if it does not say."""
    try:
        said = subprocess.run(  # noqa: S603  (what Spark itself is about to run)
            [command, "-version"], capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', said.stderr + said.stdout)
    return int(found.group(1)) if found else None


def check_java(spark_version: tuple[int, int], *, iceberg: bool = False) -> int:
    """The major version of the Java that Spark would take.

    Parameters
    ----------
    spark_version
        Major and minor.
    iceberg
        Whether Iceberg's runtime is to run on it, too.

    Raises
    ------
    MissingDependencyError
        There is none, it does not run, or it is too old.
    """
    command = java_command()
    home = os.environ.get("JAVA_HOME")
    if command is None:
        why = "no java on the PATH, and no JAVA_HOME"
        if home:
            why = f"JAVA_HOME is {home!r}, and no bin/java is there"
            other = shutil.which("java")
            if other:
                why += f" (Spark takes {other}, which is on the PATH, where JAVA_HOME is not set)"
        raise MissingDependencyError(f"Spark needs Java, and none was found: {why}. {JAVA_ADVICE}")
    version = java_version(command)
    if version is None:
        raise MissingDependencyError(f"Spark needs Java, and {command} does not run or say its version. {JAVA_ADVICE}")
    oldest = _OLDEST.get(spark_version, 17)
    if version < oldest:
        name = ".".join(map(str, spark_version))
        raise MissingDependencyError(
            f"Spark {name} needs Java {oldest} or later, and {command} is {version}. {JAVA_ADVICE}"
        )
    if iceberg and version < _OLDEST_ICEBERG:
        raise MissingDependencyError(
            f"Iceberg's runtime needs Java {_OLDEST_ICEBERG} or later, and {command} is {version}. {JAVA_ADVICE}"
        )
    return version
