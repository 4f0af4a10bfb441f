"""The network of a stored run: as it was, or not at all."""

import pytest

import weftline
from weftline import _native
from weftline.errors import ResultsWarning
from weftline.measures import networks, spread

pytestmark = pytest.mark.skipif(not hasattr(_native, "Table"), reason="the native module is not built")

KINDS = {"a": "host", "b": "host", "s": "switch", "t": "switch"}
NODES = "".join(f'[[node]]\nname = "{name}"\nkind = "{kind}"\n' for name, kind in KINDS.items())
LINK = '[[link]]\na = "{}"\nb = "{}"\nrate = "10Gbps"\ndelay = "1us"\n'


def test_a_topology_of_a_file_counts_as_the_run_read_it(tmp_path):
    file = tmp_path / "net.toml"
    ends = [("a", "s"), ("b", "t"), ("s", "t")]
    as_run = NODES + "".join(LINK.format(*pair) for pair in ends)
    file.write_text(as_run)
    scenario = {
        "topology": {"kind": "file", "file": str(file)},
        "workload": [{"kind": "poisson", "size": "100KB", "load": 0.5, "count": 20}],
        "measure": {"utilisation": {"ports": "*", "every": "10us"}},
    }
    run = weftline.run(scenario, out=tmp_path / "run")
    before = spread.max_utilisation(run)
    assert before and networks.port_sides(run)["s.p1"] == networks.PortSides(of_host=False, to_host=False)
    # With the link of the switches first their ports have other numbers.
    file.write_text(NODES + "".join(LINK.format(*pair) for pair in reversed(ends)))
    with pytest.warns(ResultsWarning, match="net.toml: the file of a topology has changed since a run"):
        assert spread.max_utilisation(run) is None
    with pytest.warns(ResultsWarning, match="or does not exist"):
        file.unlink()
        assert networks.built(run) is None
    file.write_text(as_run)
    assert spread.max_utilisation(run) == before
