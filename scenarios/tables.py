"""Tables of a run between three shapes: columns of numpy arrays, data frames, parquet files.

pyarrow and pandas are imported when a table is first made: a command that shows help needs neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simulator.errors import InputError
from simulator.result import Coded, Column, Columns

if TYPE_CHECKING:
    import pandas as pd

#: A table larger than this when unpacked (bytes) is not read: our own largest are a tenth of it.
MAX_TABLE_BYTES = 8_000_000_000


def frame(columns: Columns) -> pd.DataFrame:
    """A data frame of a table; coded columns become categories."""
    import pandas as pd

    return pd.DataFrame({name: _series(column) for name, column in columns.items()})


def _series(column: Column) -> Any:
    import pandas as pd

    if isinstance(column, Coded):
        return pd.Categorical.from_codes(column.codes, categories=pd.Index(list(column.names)))
    return column


def arrow(columns: Columns) -> Any:
    """An Arrow table of a table; coded columns stay coded."""
    import pyarrow as pa

    return pa.Table.from_arrays([_arrow(column) for column in columns.values()], names=list(columns))


def _arrow(column: Column) -> Any:
    import pyarrow as pa

    if isinstance(column, Coded):
        codes = _numbers(np.asarray(column.codes, dtype=np.int32))
        return pa.DictionaryArray.from_arrays(codes, _texts(column.names))
    return _texts(column.tolist()) if column.dtype.kind in "OU" else _numbers(column)


def _numbers(array: NDArray[Any]) -> Any:
    """An Arrow array over the bytes of a numpy array (`pyarrow.array` would import pandas, half a second)."""
    import pyarrow as pa

    flags = array.dtype == bool
    kind = pa.bool_() if flags else pa.from_numpy_dtype(array.dtype)
    values = np.packbits(array, bitorder="little") if flags else np.ascontiguousarray(array)
    return pa.Array.from_buffers(kind, len(array), [None, pa.py_buffer(values)])


def _texts(texts: Sequence[str]) -> Any:
    """An Arrow array of texts."""
    import pyarrow as pa

    encoded = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.large_string(), len(encoded), buffers)


def write(columns: Columns, path: Path) -> None:
    """Write a table to a parquet file. The same table gives the same bytes."""
    import pyarrow.parquet as pq

    texts = [
        name for name, column in columns.items() if isinstance(column, Coded) or column.dtype.kind in "OUib"
    ]
    pq.write_table(
        arrow(columns),
        path,
        compression="zstd",
        compression_level=1,
        use_dictionary=texts,
        write_statistics=False,
    )


def read(path: Path, only: Sequence[str] | None = None) -> dict[str, Column]:
    """Read a table back as columns; texts come back coded.

    Args:
        path: a parquet file of a run.
        only: the columns to read; None reads all. Columns that the file lacks are left out.

    Raises:
        InputError: the file is no parquet file, or too large.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
        _check_size(file.metadata, path)
        names = file.schema_arrow.names if only is None else [n for n in only if n in file.schema_arrow.names]
        table = file.read(columns=names)
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            file=str(path), expected="a table that a run has written", found=str(error).splitlines()[0]
        ) from error
    return {name: _column(table.column(name)) for name in names}


def _check_size(metadata: Any, path: Path) -> None:
    size = sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))
    if size > MAX_TABLE_BYTES:
        raise InputError(
            file=str(path), found=f"{size} bytes", expected=f"a table of at most {MAX_TABLE_BYTES} bytes"
        )


def _column(chunked: Any) -> Column:
    import pyarrow as pa

    if pa.types.is_string(chunked.type) or pa.types.is_large_string(chunked.type):
        chunked = chunked.dictionary_encode()
    coded = pa.types.is_dictionary(chunked.type)
    whole = (chunked.unify_dictionaries() if coded else chunked).combine_chunks()
    if isinstance(whole, pa.ChunkedArray):
        whole = whole.chunk(0) if whole.num_chunks else pa.array([], type=chunked.type)
    if not coded:
        return _flat(whole)
    codes = _flat(whole.indices.fill_null(-1) if whole.null_count else whole.indices)
    return Coded(codes.astype(np.int32), tuple(str(name) for name in whole.dictionary.to_pylist()))


def _flat(array: Any) -> NDArray[Any]:
    """A numpy array of an Arrow array, over its bytes where it can be (see `_numbers`)."""
    import pyarrow as pa

    _, values = array.buffers() if array.type.num_buffers == 2 else (None, None)
    if array.null_count or values is None or not (pa.types.is_primitive(array.type)):
        return np.asarray(array.to_numpy(zero_copy_only=False))
    first, count = array.offset, len(array)
    if pa.types.is_boolean(array.type):
        bits = np.unpackbits(np.frombuffer(values, np.uint8), count=first + count, bitorder="little")
        return bits[first:].astype(bool)
    numbers: NDArray[Any] = np.frombuffer(values, array.type.to_pandas_dtype())[first : first + count]
    return numbers
