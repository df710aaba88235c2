//! A large message that is read into the final `bytes`.

use std::os::fd::{AsRawFd, OwnedFd};

use pyo3::exceptions::{PyBlockingIOError, PyInterruptedError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PySlice};

use crate::exit;

/// The first byte of a frame that is a whole binary message, neither fragmented nor compressed.
const WHOLE_BINARY: u8 = 0x82;

/// The header of a server's frame of 64 KiB or more: its first two bytes, and eight of its length.
const HEADER_BYTES: usize = 10;

/// So much must be missing: below, one more copy costs less than the calls.
const MISSING_BYTES_MIN: usize = 128 << 10;

/// A longer message must have arrived in part: a header alone makes us hold no more than this.
const UNSEEN_BYTES_MAX: usize = 4 << 20;

/// The bytes that may be reserved for each one that has arrived, beyond [`UNSEEN_BYTES_MAX`].
const RESERVED_PER_BYTE: usize = 64;

/// A message that has arrived in part.
///
/// Nothing but Python can write to memory that becomes `bytes`: an `io.BytesIO` gives away its
/// buffer without a copy, and `os.readv` reads into a view of it.
#[derive(Debug)]
pub(crate) struct Large {
    buffer: Py<PyAny>,
    view: Py<PyAny>,
    readv: Py<PyAny>,
    /// The number of bytes that have arrived.
    filled: usize,
    /// The length of the message.
    bytes: usize,
}

impl Large {
    /// Begins with `frame`, the start of a frame of which `missing_bytes` are missing. `None` if
    /// the frame is not of this kind, or too small to be worth it.
    pub(crate) fn begin(
        py: Python<'_>,
        frame: &[u8],
        missing_bytes: usize,
    ) -> PyResult<Option<Self>> {
        if frame.first() != Some(&WHOLE_BINARY) || missing_bytes < MISSING_BYTES_MIN {
            return Ok(None);
        }
        let Some(start) = frame.get(HEADER_BYTES..) else { return Ok(None) };
        let bytes = start.len().saturating_add(missing_bytes);
        if bytes > UNSEEN_BYTES_MAX.max(frame.len().saturating_mul(RESERVED_PER_BYTE)) {
            return Ok(None);
        }
        let buffer = py.import(intern!(py, "io"))?.call_method0(intern!(py, "BytesIO"))?;
        let readv = py.import(intern!(py, "os"))?.getattr(intern!(py, "readv"))?.unbind();
        let (seek, write) = (intern!(py, "seek"), intern!(py, "write"));
        buffer.call_method1(seek, (bytes - 1,))?;
        buffer.call_method1(write, (PyBytes::new(py, &[0]),))?;
        buffer.call_method1(seek, (0,))?;
        buffer.call_method1(write, (PyBytes::new(py, start),))?;
        let view = buffer.call_method0(intern!(py, "getbuffer"))?.unbind();
        Ok(Some(Self { buffer: buffer.unbind(), view, readv, filled: start.len(), bytes }))
    }

    /// Reads what is there. Returns how much: 0 at the end of the stream, `None` if nothing is.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn read(&mut self, py: Python<'_>, socket: &OwnedFd) -> PyResult<Option<usize>> {
        let rest = PySlice::new(py, self.filled.cast_signed(), self.bytes.cast_signed(), 1);
        let rest = self.view.bind(py).get_item(rest)?;
        // It lets go of the interpreter.
        match exit::call(|| self.readv.bind(py).call1((socket.as_raw_fd(), (rest,)))) {
            Ok(read) => {
                let read = read.extract()?;
                self.filled += read;
                Ok(Some(read))
            }
            Err(error)
                if exit::check().is_ok()
                    && (error.is_instance_of::<PyBlockingIOError>(py)
                        || error.is_instance_of::<PyInterruptedError>(py)) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.filled == self.bytes
    }

    /// The message, once it is complete.
    pub(crate) fn finish(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        // While there is a view, the buffer would be copied.
        self.view.call_method0(py, intern!(py, "release"))?;
        self.buffer.call_method0(py, intern!(py, "getvalue"))
    }
}
