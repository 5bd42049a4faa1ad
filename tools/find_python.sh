#!/bin/sh
# Print the first Python on this machine that can make a virtual environment for the package (3.11 or newer).
for python in ${PYTHON:-} python3 python3.11 python3.12 python3.13 python3.14 python; do
    if "$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
        command -v "$python"
        exit 0
    fi
done
echo "kafka_assign needs Python 3.11 or newer with venv: install one, or say where it is (make run PYTHON=/path/to/python3)" >&2
exit 1
