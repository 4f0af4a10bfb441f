//! Keys that a scheme declares and that have no effect as it is set.

use super::Parameters;

impl Parameters<'_> {
    /// Whether the user gave `key` here, not where this table inherits from.
    pub fn is_own(&self, key: &str) -> bool {
        self.source.is_own(key)
    }

    /// Removes a value that has no effect from the resolved scenario, and reports an error if the user gave
    /// it here.
    pub fn without_effect(&mut self, key: &str, message: impl FnOnce() -> String) {
        self.source.forget(key);
        self.source.report_idle(key, message());
    }

    /// The same, except where the value is the default: former versions wrote it into scenarios with every
    /// value in force.
    pub fn idle(&mut self, key: &str, message: impl FnOnce() -> String) {
        match self.source.is_default(key) {
            true => self.source.forget(key),
            false => self.without_effect(key, message),
        }
    }

    /// Reports an error if the user gave a key here that is not read, because it belongs to something else.
    pub fn refuse(&mut self, key: &str, message: impl FnOnce() -> String) {
        if self.source.peek(key).is_none() {
            return;
        }
        // Known, so that it is not reported twice.
        self.source.get(key);
        self.source.report_idle(key, message());
    }
}
