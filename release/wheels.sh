#!/bin/sh
# Builds a source distribution and a wheel for each Rust target that is named, into dist/.
# zig links for Linux of either processor from either. A macOS target needs Apple's SDK (SDKROOT), which may not be
# copied off a Mac: elsewhere it is left out and said so, and .github/workflows/release.yml builds it on one.
set -e
maturin sdist --out dist
for target in "$@"; do
    rustup target add "$target" >/dev/null 2>&1 || true
    case $target in
        *-linux-gnu) maturin build --release --zig --compatibility manylinux2014 --target "$target" --out dist ;;
        *-apple-darwin)
            if [ "$(uname)" = Darwin ] || [ -n "$SDKROOT" ]; then
                maturin build --release --target "$target" --out dist
            else
                echo "not built: $target needs a Mac, or Apple's SDK in SDKROOT" >&2
            fi ;;
        *) maturin build --release --target "$target" --out dist ;;
    esac
done
