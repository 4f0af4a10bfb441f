"""Figures: one Vega-Lite specification each, with its data; shown in notebooks, exported, drawn in pages."""
