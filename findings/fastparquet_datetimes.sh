#!/bin/sh
# fastparquet writes wrong times, without an error, from datetimes that are not in nanoseconds:
#  - with times="int96" it takes every datetime for nanoseconds. Microseconds are the default of pandas 3.
#  - by default it takes datetimes of seconds down to thousands of seconds, in a column of milliseconds.
# Needs Python 3 with venv, and PyPI. Fails if a version writes other times than those below.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet fastparquet==2026.9.0 pandas==3.1.1 pyarrow==26.0.1
cd "$dir"
cat > write.py <<'PYTHON'
import fastparquet, pandas, pyarrow, pyarrow.parquet

for unit in ["s", "ms", "us", "ns"]:
    times = pandas.Series(pandas.to_datetime(["2025-11-20"])).astype(f"datetime64[{unit}]")
    for how in ["int64", "int96"]:
        fastparquet.write("f.parquet", pandas.DataFrame({"ts": times}), times=how)
        read = pyarrow.parquet.read_table("f.parquet")["ts"].cast(pyarrow.timestamp("ns"))
        print(f"datetime64[{unit}] as {how}: 2025-11-20 is {read[0].as_py()}")
PYTHON
cat > expected <<'TEXT'
datetime64[s] as int64: 2025-11-20 is 1970-01-01 00:29:23.596000
datetime64[s] as int96: 2025-11-20 is 1970-01-01 00:00:01.763596800
datetime64[ms] as int64: 2025-11-20 is 2025-11-20 00:00:00
datetime64[ms] as int96: 2025-11-20 is 1970-01-01 00:29:23.596800
datetime64[us] as int64: 2025-11-20 is 2025-11-20 00:00:00
datetime64[us] as int96: 2025-11-20 is 1970-01-21 09:53:16.800000
datetime64[ns] as int64: 2025-11-20 is 2025-11-20 00:00:00
datetime64[ns] as int96: 2025-11-20 is 2025-11-20 00:00:00
TEXT
venv/bin/pip list 2>/dev/null | grep -E '^(fastparquet|pandas|pyarrow) '
venv/bin/python write.py | tee actual
diff expected actual
