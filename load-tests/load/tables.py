"""Results as Markdown."""

from rounds import MEASURE, SCENARIOS, micros, middle
from scenarios import title

MEGABYTE = 1e6

HEAD = """\
| scenario | over | CPU µs/request | CPU µs/event | requests/s | first byte p50, p99 ms | gap p99 ms | whole p50, p99 ms | RSS MB | answered, refused, left | faults |
|---|---|---|---|---|---|---|---|---|---|---|"""

PEERS_HEAD = """\
| gateway | CPU µs per plain request | of vllm-router's | CPU µs per 53-event stream | of vllm-router's | plain p50, p99 ms | stream p50, p99 ms | RSS MB | not right |
|---|---|---|---|---|---|---|---|---|"""


def number(value, digits=0):
    return "–" if value is None else f"{value:,.{digits}f}"


def faults(report):
    parts = [f"{count} × {fault}" for fault, count in report["faults"].items()]
    parts += [f"{report['unfinished']} unfinished"] if report["unfinished"] else []
    return ", ".join(parts) or "none"


def times(summary):
    return f"{summary['p50']:.2f}, {summary['p99']:.2f}" if summary["count"] else "–"


def row(database, report):
    gateway = report["gateway"]
    cells = (
        report["title"], title(database), number(gateway and gateway["micros_per_request"]),
        number(gateway and gateway["micros_per_event"], 1), number(report["per_second"]),
        times(report["first"]), number(report["gap"]["p99"] if report["gap"]["count"] else None, 2), times(report["total"]),
        number(gateway and gateway["usage"]["resident_max"] / MEGABYTE),
        f"{report['answered']:,}, {report['refused']:,}, {report['left']:,}", faults(report),
    )
    return "| " + " | ".join(cells) + " |"


def notes(results):
    """What the table has no column for."""
    for database, report in results.get("plain-half", {}).items():
        direct, own = report["direct"]["total"], report["total"]
        yield (f"At half of its own rate over {title(database)} ({report['per_second']:,.0f}/s) it adds {own['p50'] - direct['p50']:.2f} ms "
               f"at p50 and {own['p99'] - direct['p99']:.2f} ms at p99.")
    for database, report in results.get("overload", {}).items():
        peak = results.get("capacity", {}).get(database)
        if database != "direct" and peak:
            goodput = report["answered"] / report["seconds"] / (peak["answered"] / peak["seconds"])
            yield (f"At ten times the upstream's capacity over {title(database)}: {100 * goodput:.0f} % of the peak is answered; refusals "
                   f"take {report['refusal']['p50']:.1f} ms at p50, {report['refusal']['p99']:.1f} at p99.")
    for name in ("stream-2000", "streams-1000"):
        direct = results.get(name, {}).get("direct")
        for database, report in results.get(name, {}).items():
            if database != "direct" and direct:
                yield (f"{report['title']} over {title(database)}: p99 of the gaps between events {report['gap']['p99']:.2f} ms, "
                       f"{report['gap']['p99'] - direct['gap']['p99']:+.2f} beside the upstream alone.")
    for database, report in results.get("soak", {}).items():
        gateway = report["gateway"]
        yield (f"Soak of {report['seconds']:,.0f} s over {title(database)}: {gateway['resident_slope'] / MEGABYTE:+.2f} MB and "
               f"{gateway['descriptor_slope']:+.2f} descriptors a minute.")
    starts = [report["cold_start_seconds"] for report in results.get("plain", {}).values() if "cold_start_seconds" in report]
    if starts:
        yield f"From its start to its port: {min(starts):.2f} to {max(starts):.2f} s."


def scenarios(results):
    rows = [row(database, report) for by_database in results.values() for database, report in by_database.items()]
    return "\n".join([HEAD, *rows, "", *(f"* {note}" for note in notes(results))])


def peers(everyone):
    base = {scenario: next((micros(peer, scenario) for peer in everyone if peer.name == MEASURE), None) for scenario in SCENARIOS}
    ordered = sorted(everyone, key=lambda peer: micros(peer, SCENARIOS[0]) or float("inf"))
    return "\n".join([PEERS_HEAD, *(peer_row(peer, base) for peer in ordered)])


def peer_row(peer, base):
    plain, stream = SCENARIOS

    def ratio(scenario):
        own = micros(peer, scenario)
        return number(own / base[scenario], 2) if own and base[scenario] else "–"

    def spread(scenario):
        at = [middle(peer, scenario, lambda report, share=share: report["total"][share]) for share in ("p50", "p99")]
        return "–" if None in at else f"{at[0]:.1f}, {at[1]:.1f}"

    wrong = {fault for scenario in SCENARIOS for report in peer.reports[scenario] for fault in report["faults"]}
    resident = middle(peer, stream, lambda report: report["gateway"]["usage"]["resident"] / MEGABYTE)
    cells = (peer.title, number(micros(peer, plain)), ratio(plain), number(micros(peer, stream)), ratio(stream), spread(plain),
             spread(stream), number(resident), peer.why_not or ", ".join(sorted(wrong)) or "nothing")
    return "| " + " | ".join(cells) + " |"
