"""Parquet tables that are whole or absent, and of which a changed byte is noticed.

Pages of data carry a checksum of the format's own; names and types of the columns, which it leaves
out, carry one among the metadata. Tables that were written without them are read as they are.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from vitolab.files import atomic

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_SUM = b"vitolab_schema_sha256"


def write_table(path: Path, table: pd.DataFrame, compression: str = "snappy") -> None:
    """Write a table, whole or not at all.

    Parameters
    ----------
    path : Path
    table : DataFrame
    compression : str
        One of the codecs of Parquet.
    """
    import pyarrow as pa
    from pyarrow import parquet

    stored = pa.Table.from_pandas(table, preserve_index=False)
    known = {**(stored.schema.metadata or {}), _SUM: _digest(stored.schema)}
    with atomic(path) as temporary:
        parquet.write_table(
            stored.replace_schema_metadata(known),
            temporary,
            compression=compression,
            write_page_checksum=True,
        )


def read_table(path: Path) -> pd.DataFrame:
    """Read a table, and verify its checksums.

    Raises
    ------
    OSError
        If the system refuses.
    ValueError
        If the file is damaged, or none of Parquet.
    """
    from pyarrow import parquet

    content = path.read_bytes()  # an error of the system is none of the content
    try:
        import pyarrow as pa

        found = parquet.read_table(pa.BufferReader(content), page_checksum_verification=True)
        expected = (found.schema.metadata or {}).get(_SUM)
        if expected is not None and expected != _digest(found.schema):
            raise ValueError("names or types of columns are not those that were stored")
        table: pd.DataFrame = found.to_pandas()
    except Exception as error:  # damaged files make pyarrow and pandas raise in many ways
        why = " ".join(str(error).split())[:200]
        raise ValueError(f"{path}: damaged, expected a table ({why})") from None
    return table


def is_sound(path: Path) -> bool:
    """Whether a table is there and undamaged."""
    try:
        read_table(path)
    except (OSError, ValueError):
        return False
    return True


def _digest(schema: pa.Schema) -> bytes:
    """SHA-256 of a schema without its own, as 64 hexadecimal digits."""
    known = {key: value for key, value in (schema.metadata or {}).items() if key != _SUM}
    content = schema.with_metadata(known).serialize()
    return hashlib.sha256(content).hexdigest().encode()
