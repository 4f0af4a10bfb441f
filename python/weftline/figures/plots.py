"""Figures of runs, one or several side by side: ``run.plot.cdf()``, ``weftline.plot(a, b).queues()``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from weftline.errors import InputError, nearest, warn
from weftline.figures import flow_figures, job_figures, marks, network_view, path_figures, specs, time_figures
from weftline.figures.specs import Figure
from weftline.measures import curves, given, line_notes, over_time, queue_ports
from weftline.measures.lines import Line


class Drawn(NamedTuple):
    """How a series is drawn over time."""

    axis: str
    """Title with its unit; "{span}" becomes the length of the spans over which a count is."""
    scale: float
    combine: curves.Combine
    """How entities make one line; "each" gives each its own, or of more than eight the largest."""
    each: str = ""
    """The title where each entity is drawn by itself, if it is another one."""


SERIES = {
    "goodput_bps": Drawn("goodput (Gb/s)", 1e-9, "sum"),
    "utilisation": Drawn("utilisation of the busiest port (%)", 100, "max", "utilisation (%)"),
    "queue_bytes": Drawn("longest queue (KB)", 1e-3, "max", "queue (KB)"),
    "rate_bps": Drawn("rate (Gb/s)", 1e-9, "each"),
    "cwnd_bytes": Drawn("window (KB)", 1e-3, "each"),
    "drops": Drawn("dropped packets in {span}", 1, "sum"),
    "ecn_marks": Drawn("marked packets in {span}", 1, "sum"),
    "pauses": Drawn("pauses in {span}", 1, "sum"),
    "paused": Drawn("paused ports", 1, "sum", "paused (share of time)"),
}
"""How series are drawn, by name; counts that are not among them are summed, all others drawn each."""


def _drawn(metric: str) -> Drawn:
    """Return how a series of any name is drawn."""
    words = metric.replace("_", " ")
    is_count = over_time.series(metric).kind == "count"
    other = Drawn(f"{words} in {{span}}", 1.0, "sum") if is_count else Drawn(words, 1.0, "each")
    return SERIES.get(metric, other)


def plot(*of: given.Given) -> Plots:
    """Return the figures of some runs side by side; those that differ in the seed alone make one line.

    Parameters
    ----------
    *of : Run, path, SweepResult or dict
        Runs, folders of runs, sweeps, or a dict of these by label: ``weftline.plot({"Mine": run})``.
    """
    if not of:
        raise InputError("plot: expected at least one run")
    lines = given.lines_in(of)
    if not lines:
        raise InputError("plot: expected runs; there is none that finished")
    warn(line_notes.warnings_of(lines))
    return Plots(lines)


class Plots:
    """The figures of runs. Each method returns a `Figure`, which notebooks show and `Figure.save` writes."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self.lines = list(lines)

    def fct_slowdown(self, *, bins: str = "equal-count") -> Figure:
        """Return FCT slowdown by flow size, a panel for each of p50, p95 and p99.

        Parameters
        ----------
        bins : {"equal-count", "decades"}
            Bins of equally many flows, as in the HPCC papers, or one for each power of ten.
        """
        finished, title = self._finished(), "FCT slowdown by flow size"
        caption = line_notes.ideal_text(self.lines)
        if bins == "decades":
            return self._marked(flow_figures.slowdown_by_decade(title, finished, caption=caption))
        if bins != "equal-count":
            raise InputError(f'bins: expected "equal-count" or "decades", found {bins!r}')
        return self._marked(specs.slowdown(title, finished, caption=caption))

    def cdf(self, column: str = "slowdown") -> Figure:
        """Return the share of finished flows at or below a ``slowdown``, ``fct_ns`` or ``goodput_bps``."""
        if column not in flow_figures.AXES:
            raise InputError(f"column: expected one of {', '.join(flow_figures.AXES)}, found {column!r}")
        titles = {"slowdown": "FCT slowdown of all flows", "fct_ns": "Flow completion time"}
        title, finished = titles.get(column, "Goodput of flows"), self._finished()
        caption = line_notes.finished_text(self.lines)
        return self._marked(flow_figures.cumulative(title, finished, column=column, caption=caption))

    def queues(self) -> Figure:
        """Return the share of samples whose queue has at most a length; needs ``measure.queue_histogram``.

        Of the ports of switches, where ports of hosts were sampled too.
        """
        if not any(line.runs[0].queues for line in self.lines):
            raise InputError("no histogram of queues was measured: ask for it by measure.queue_histogram")
        return specs.queue_cdf(queue_ports.figure_title(self.lines), self.lines)

    def queue_heat(self) -> Figure:
        """Return the queue of each port over time, of the first line; needs ``measure.queues``."""
        self._measured("queue_bytes", "measure.queues")
        return time_figures.queue_heats(self._first("Queues by port and time"), self.lines[:1])[0]

    def over_time(self, metric: str = "goodput_bps") -> Figure:
        """Return one series over time, its entities combined as `SERIES` says; of one run, each by itself.

        More than eight curves are not drawn each: then entities of one run are combined, too, and of rates,
        windows and other internals the largest of each line is drawn. The caption names the combination, and
        the spans over which values are thinned.
        """
        axis, scale, combine, each = _drawn(metric)
        self._measured(metric, "[measure]")
        lines = [line for line in self.lines if line.runs[0].recorded(metric, max_points=1)]
        if len(lines) == 1 and specs.curves_over_time(lines, metric) <= len(marks.COLOURS):
            axis, combine = each or axis, "each"
        title = axis[:1].upper() + axis[1:].partition(" (")[0].partition(" in {")[0] + " over time"
        lacking = [line.label for line in self.lines if line not in lines]
        caption = f"Not measured in {', '.join(lacking)}." if lacking else ""
        return self._marked(
            specs.over_time(
                title, lines, metric_name=metric, axis=axis, scale=scale, combine=combine, caption=caption
            )
        )

    def goodput(self) -> Figure:
        """Return payload delivered over time, by group or flow; needs ``measure.goodput``."""
        return self.over_time("goodput_bps")

    def jobs(self, column: str = "time_ns") -> Figure:
        """Return the time of each step of each job and its ideal one, or another column.

        Parameters
        ----------
        column : str
            ``time_ns``, ``finish_to_finish_ns``, ``algbw_bps`` or ``busbw_bps``; bandwidths of a training job
            or a job of a file are those of its collective operations.
        """
        if not any(line.runs[0].steps for line in self.lines):
            raise InputError("these runs have no jobs: they need a workload of kind collective or incast")
        if column not in job_figures.AXES:
            raise InputError(f"column: expected one of {', '.join(job_figures.AXES)}, found {column!r}")
        figure = job_figures.steps("Steps of jobs", self.lines, column=column)
        if not figure.spec["data"]["values"]:
            raise InputError(f"{column}: no step of these runs has one, so that there is nothing to draw")
        return self._marked(figure)

    def fairness(self) -> Figure:
        """Return Jain's index of the measured goodputs over time; needs ``measure.goodput`` of several."""
        self._measured("goodput_bps", "measure.goodput")
        figure = time_figures.fairness("Fairness over time", self.lines)
        if not figure.spec["data"]["values"]:
            raise InputError(
                "no two of the flows or groups whose goodput was measured last through an interval of it; "
                "measure.goodput.every can be shorter"
            )
        return figure

    def paths_known(self) -> Figure:
        """Return the share of paths that PINT knows by packets; needs ``telemetry.record`` above 0."""
        figure = path_figures.paths_known("Paths known by packets", self.lines)
        if not figure.spec["data"]["values"]:
            raise InputError(
                "no digests of a query for paths were recorded: they need telemetry of kind pint with such a "
                "query, and telemetry.record above 0"
            )
        return self._marked(figure)

    def network(self, metric: str | None = None) -> Figure:
        """Return the network of the first line, its links coloured by a series of ports.

        Parameters
        ----------
        metric : str, optional
            ``utilisation``, ``queue_bytes``, ``drops``, ``ecn_marks`` or ``pauses``. Without it the
            utilisation, or, where it was not measured, no colours.
        """
        known = {measure.metric: measure.key for measure in network_view.MEASURES}
        if metric is not None and metric not in known:
            raise InputError(
                f'metric: the network has no series "{metric}": {nearest(metric, list(known))}'
                f"expected one of {', '.join(known)}"
            )
        if metric is not None and not self.lines[0].runs[0].recorded(metric, max_points=1):
            raise InputError(
                f"{metric} was not measured in {self.lines[0].label}: ask for it by measure.{known[metric]}"
            )
        title = self._first("The network")
        found = path_figures.network(title, self.lines[0], metric=metric or "utilisation")
        if found is None:
            raise InputError("this network has too many links for a picture, or its file no longer exists")
        return found

    def _marked(self, figure: Figure) -> Figure:
        """Return a figure in which each line has the marks that it has where all lines are drawn."""
        marks.keep_marks(figure.spec, [line.label for line in self.lines])
        return figure

    def _first(self, title: str) -> str:
        """Return the title of a figure of the first line alone."""
        return f"{title}, {self.lines[0].label}" if len(self.lines) > 1 else title

    def _finished(self) -> list[Line]:
        finished = [line for line in self.lines if line.has_flows]
        if not finished:
            raise InputError("no flow of these runs finished: there is no completion time to draw")
        return finished

    def _measured(self, metric: str, key: str) -> None:
        if not any(line.runs[0].recorded(metric, max_points=1) for line in self.lines):
            over_time.check_series(self.lines[0].runs[0], metric)
            raise InputError(f"{metric} was not measured in these runs: ask for it by {key}")
