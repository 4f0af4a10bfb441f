//! Frames byte by byte, and runs whose captures are held against what is known of them.

use super::*;
