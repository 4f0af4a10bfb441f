//! Situations in which window controllers are tested alone.
