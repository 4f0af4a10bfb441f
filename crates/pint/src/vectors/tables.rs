//! The tables that the C twin needs.

use crate::fixed::{LOGARITHMS, POWERS};
use std::fmt::Write;

/// The tables that the C twin needs, as a header file.
pub fn c_tables() -> String {
    let mut text = String::from(
        "/* Tables of weftline_pint.h, written by the Rust crate (vectors.rs): do not edit. */\n#ifndef WEFTLINE_PINT_TABLES_H\n\
         #define WEFTLINE_PINT_TABLES_H\n\n#include <stdint.h>\n",
    );
    let reservoir: Vec<u64> = (0..256u64).map(|hop| (1u64 << 32).checked_div(hop).unwrap_or(0)).collect();
    let bends = |bends: &[u32]| bends.iter().map(|&bend| bend.into()).collect::<Vec<u64>>();
    let tables = [
        ("uint64_t PINT_RESERVOIR", "floor(2^32 / hop)", reservoir),
        ("uint64_t PINT_LOG_ENDS", "log2(1 + i/256), 2^-32", LOGARITHMS.ends.to_vec()),
        ("uint32_t PINT_LOG_BENDS", "4 times the middle above the chord, 2^-40", bends(&LOGARITHMS.bends)),
        ("uint64_t PINT_POWER_ENDS", "2^(i/256) - 1, 2^-32", POWERS.ends.to_vec()),
        ("uint32_t PINT_POWER_BENDS", "4 times the middle below the chord, 2^-40", bends(&POWERS.bends)),
    ];
    for (name, comment, numbers) in tables {
        let _ = write!(text, "\n/* {comment}. */\nstatic const {name}[{}] = {{", numbers.len());
        for (place, number) in numbers.iter().enumerate() {
            let _ = write!(text, "{}{number:#x},", if place % 8 == 0 { "\n\t" } else { " " });
        }
        text.push_str("\n};\n");
    }
    text.push_str("\n#endif\n");
    text
}
