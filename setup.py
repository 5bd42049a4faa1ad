"""Builds the package from what `settings.ini` says, so that every fact about it stands in one place."""
from configparser import ConfigParser
from pathlib import Path

from setuptools import find_packages, setup

here = Path(__file__).parent
config = ConfigParser(delimiters=["="], interpolation=None)
config.read(here / "settings.ini", encoding="utf-8")
settings = config["DEFAULT"]

setup(
    name=settings["lib_name"],
    version=settings["version"],
    description=settings["description"],
    long_description=(here / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    author=settings["author"],
    license="Apache-2.0",
    keywords=settings["keywords"],
    python_requires=">=" + settings["min_python"],
    packages=find_packages(include=["kafka_assign*"]),
    include_package_data=True,
    package_data={"kafka_assign": ["py.typed"], "kafka_assign.clients": ["*.json"],
                  "kafka_assign.samples": ["*.jsonl", "*.txt"], "kafka_assign.fleet": ["log4j2.properties"]},
    install_requires=settings["requirements"].split(),
    extras_require={name: settings[f"{name}_requirements"].split() for name in settings["extras"].split()},
    entry_points={"console_scripts": settings["console_scripts"].split()},
    classifiers=[
        "Development Status :: 3 - Alpha",
        "Intended Audience :: Developers",
        "Natural Language :: English",
        "Programming Language :: Python :: 3",
    ],
    zip_safe=False,
)
