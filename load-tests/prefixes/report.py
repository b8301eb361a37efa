"""The report, as markdown."""

from scenarios import SCENARIOS

BEGIN = """\
# Prefixes: what upstreams see only grows

`{command}`: {episodes} simulated episodes through running gateways, over emulators (real HTTP and events) that bind each thought to all that stood before
it as Anthropic does, want reasoning back where it stood as OpenAI does, keep prompts in caches as each provider does, and bill by them. Two in three episodes
go through one gateway over SQLite, which is killed (`-9`) and started again four times meanwhile; the others in turn through three replicas on one PostgreSQL, two
of which are killed. Clients speak chat completions, Messages and Responses, by turns, and give back what they were given.

*Without a gateway* is what the same requests, as the clients wrote them, to the same models in the same order, would have had of a fresh cache. A request
that the gateway made several calls for (asked again, cut, voted) stands for one call there. *Cached* is what was found in the cache, in thousands of tokens; money is
that of prompts, by the price lists. Intervals of 95 %, a bootstrap over episodes.
"""
MEANS = """\
## What is emulated

- **Anthropic** (`claude-opus-5-5`, `claude-sonnet-5-5`, and `claude-opus-4-7`, which binds nothing): a signature holds a hash of `tools`, `system`, all messages and
  blocks before it, and the thought before it; markers of caches do not count, cleared instructions do. Another beginning is refused with 400, or the thought
  dropped and told of where the request asks for that. Features before their release need their `anthropic-beta`. A prompt is kept at its marks only, from 512 tokens on, and found up to
  20 blocks before a mark; what is kept of messages holds for one `tool_choice`, one manner of thinking and one effort.
- **OpenAI's chat completions**: kept by itself in steps of 128 tokens from 1,024 on. **Responses**: as from GPT-5.6 on, kept at its end for a quarter more and found only
  where a prompt goes on from there exactly; encrypted reasoning goes back before what followed it, or is refused.
- **DeepSeek**: kept by itself in steps of 64 tokens; thoughts of a loop of tools must come back.

Four bytes are a token, and nothing expires. The models are scripts: they think between texts and calls, call several tools at once, call what is used up, and answer when
they were told to in seven of ten cases. A thought that is dropped counts once; those that a client's own edits invalidate are left out of the first table, and stand in the second as *after it*.
"""


def table(found, options):
    now, before = found["now"], found.get("before")
    command = f"make prefixes ARGS='--episodes {options.episodes} --seed {options.seed}'"
    lines = [BEGIN.format(command=command, episodes=f"{now['episodes']:,}"), *summary(found), *by_scenario(now, before), *costs(now, before), MEANS]
    if now["faults"]:
        lines += ["## What went wrong", "", *[f"- {fault[:500]}" for fault in now["faults"][:40]], ""]
    return "\n".join(lines).rstrip() + "\n"


def summary(found):
    lines = ["## All episodes", "", "| | models of | requests | asked again | prompt | cached | without a gateway | ratio | cached of all | without | prompts, $ | without, $ | 400 | dropped |",
             "|---|---|" + "---|" * 12]
    for version, result in found.items():
        for provider, (ratio, low, high) in result["ratios"].items():
            row = total([row for one, _, row in result["rows"] if one == provider])
            dropped = sum(one["dropped"] for name, scenario, one in result["rows"] if name == provider and not scenario.endswith("(after it)"))
            lines.append(" | ".join([
                f"| {version}", provider, f"{row['requests']:,}", f"{row['extra']:,}", thousands(row["prompt"]), thousands(row["matched"]),
                thousands(row["direct_cached"]), f"{100 * ratio:.1f} % [{100 * low:.1f}, {100 * high:.1f}]", share(row["cached"], row["prompt"]),
                share(row["direct_cached"], row["direct_prompt"]), dollars(row["nanos"]), dollars(row["direct_nanos"]),
                f"{result['refused'].get(provider, 0)}", f"{dropped} |"]))
    for version, result in found.items():
        ends = ", ".join(f"{count} {end}" for end, count in sorted(result["ends"].items()))
        lines.append(f"\n{version}: {result['episodes']:,} episodes in {result['seconds']:.0f} s ({ends}); {len(result['faults'])} faults.")
    return [*lines, ""]


def by_scenario(now, before):
    then = {(provider, scenario): row for provider, scenario, row in (before or {"rows": []})["rows"]}
    lines = ["## By scenario", "", "| models of | scenario | | requests | asked again | cached | without a gateway | ratio | dropped | before: ratio | before: dropped |",
             "|---|---|---|" + "---|" * 8]
    for provider, scenario, row in now["rows"]:
        old = then.get((provider, scenario))
        what = SCENARIOS[scenario.split(" ")[0]].what
        lines.append(" | ".join([
            f"| {provider}", scenario, what, f"{row['requests']:,}", str(row.get("extra", 0)), thousands(row["matched"]), thousands(row["direct_cached"]),
            share(row["matched"], row["direct_cached"]), str(row["dropped"]), share(old["matched"], old["direct_cached"]) if old else "",
            f"{old['dropped'] if old else ''} |"]))
    return [*lines, ""]


def costs(now, before):
    """Where prompts cost otherwise than without a gateway, and why."""
    then = {(provider, cause): row for provider, cause, row in (before or {"causes": []})["causes"]}
    known = {(provider, cause): row for provider, cause, row in now["causes"]}
    lines = ["## What it costs, and why", "", "Calls whose prompts were billed otherwise than without a gateway: by how many thousand tokens less was found in the cache, and how "
             "many cents more were paid.", "", "| models of | since | calls | less cached | cents | before: calls | before: less cached | before: cents |", "|---|---|" + "---|" * 6]
    for key in sorted({*known, *then}):
        cells = [cell for row in (known.get(key), then.get(key)) for cell in
                 ((f"{row['calls']:,}", thousands(row["lost"]), f"{row['nanos'] / 1e7:,.1f}") if row else ("", "", ""))]
        lines.append(f"| {key[0]} | {key[1]} | {' | '.join(cells)} |")
    return [*lines, ""]


def total(rows):
    return {name: sum(row.get(name, 0) for row in rows) for name in ("requests", "extra", "prompt", "cached", "matched", "direct_cached", "direct_prompt", "nanos", "direct_nanos")}


def thousands(tokens):
    return f"{tokens / 1000:,.0f}"


def share(part, whole):
    return f"{100 * part / whole:.1f} %" if whole else ""


def dollars(nanos):
    return f"{nanos / 1e9:.3f}"
