"""Find the Java that classic Spark would use, and advise how to install one."""

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

#: How to get a Java that works with all supported Spark versions and with Iceberg's runtime.
JAVA_ADVICE = (
    "Install a full Java 17 (Debian, Ubuntu: apt-get install openjdk-17-jre-headless; macOS: brew install openjdk@17; "
    "Windows: winget install EclipseAdoptium.Temurin.17.JRE; conda install openjdk=17), and set JAVA_HOME to its "
    "folder if java is not on the PATH. Everything that does not use Spark works without Java."
)


def java_command() -> str | None:
    """Return the path of the Java command that Spark's launcher uses; None if there is none.

    It is ``$JAVA_HOME/bin/java`` if the variable is set, otherwise the first ``java`` on the PATH.
    """
    home = os.environ.get("JAVA_HOME")
    if not home:
        return shutil.which("java")
    for name in ("java", "java.exe"):
        found = Path(home, "bin", name)
        if found.is_file() and os.access(found, os.X_OK):
            return str(found)
    return None


def java_version(command: str) -> int | None:
    """Return the major version of a Java (version 8 prints ``1.8``), or None if it prints none."""
    try:
        result = subprocess.run(  # noqa: S603  (the command that Spark itself is about to run)
            [command, "-version"], capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', result.stderr + result.stdout)
    return int(found.group(1)) if found else None


def check_java(spark_version: tuple[int, int], *, iceberg: bool = False) -> int:
    """Return the major version of the Java that Spark would use.

    Parameters
    ----------
    spark_version
        Spark's version, major and minor.
    iceberg
        Whether Iceberg's runtime has to run on it too.

    Raises
    ------
    MissingDependencyError
        Java is missing, does not run, or is too old.
    """
    command = java_command()
    home = os.environ.get("JAVA_HOME")
    if command is None:
        why = "no java on the PATH and JAVA_HOME is not set"
        if home:
            why = f"JAVA_HOME is {home!r}, which contains no bin/java"
            other = shutil.which("java")
            if other:
                why += f" (if JAVA_HOME is not set, Spark uses {other}, found on the PATH)"
        raise MissingDependencyError(f"Spark needs Java, but none was found: {why}. {JAVA_ADVICE}")
    version = java_version(command)
    if version is None:
        raise MissingDependencyError(
            f"Spark needs Java, but {command} does not run or does not print its version. {JAVA_ADVICE}"
        )
    oldest = _OLDEST.get(spark_version, 17)
    if version < oldest:
        name = ".".join(map(str, spark_version))
        raise MissingDependencyError(
            f"Spark {name} needs Java {oldest} or later, but {command} is Java {version}. {JAVA_ADVICE}"
        )
    if iceberg and version < _OLDEST_ICEBERG:
        raise MissingDependencyError(
            f"Iceberg's runtime needs Java {_OLDEST_ICEBERG} or later, but {command} is Java {version}. {JAVA_ADVICE}"
        )
    return version
