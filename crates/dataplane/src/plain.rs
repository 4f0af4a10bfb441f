//! Values of maps: as they lie in memory, in C and here.

/// A type that is only bytes: the layout of C, no padding, any bytes are a value.
///
/// # Safety
///
/// All of that must hold.
pub unsafe trait Plain: Copy {
    fn bytes(&self) -> &[u8] {
        // SAFETY: there is no padding.
        unsafe { std::slice::from_raw_parts((&raw const *self).cast(), size_of::<Self>()) }
    }

    /// None: not as many bytes as the type has.
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        // SAFETY: any bytes are a value, and there are enough of them.
        (bytes.len() == size_of::<Self>()).then(|| unsafe { bytes.as_ptr().cast::<Self>().read_unaligned() })
    }

    fn zero() -> Self {
        // SAFETY: any bytes are a value.
        unsafe { std::mem::zeroed() }
    }
}

// SAFETY: numbers, and arrays of what is plain.
unsafe impl Plain for u8 {}
unsafe impl Plain for u32 {}
unsafe impl Plain for u64 {}
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}
