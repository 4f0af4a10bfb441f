//! Sender and receiver without a network.
