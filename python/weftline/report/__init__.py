"""Pages: one HTML file over runs or over a sweep, and the local server that shows a store."""
