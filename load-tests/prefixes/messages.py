"""Anthropic's Messages, with thoughts that are bound to all that stood before them.

What is checked and what counts as a change: platform.claude.com/docs/en/build-with-claude/preserved-thinking and its pages, and
mid-conversation-system-messages (2026-11). A thought holds the hash of `tools`, `system` and everything before it, thoughts apart, and
the thought before it: thoughts may be left out from the oldest on, from the end, or all, but never from the middle.
"""

import json

from caches import digest, tokens

BETAS = {"clear_at": "mid-conversation-system-clear-at-2026-08-21", "tools": "mid-conversation-tool-changes-2026-07-01",
         "binding": "thinking-binding-controls-2026-08-01", "task": "task-budgets-2026-03-13"}
BLOCKS = {"text": {"type", "text", "cache_control"}, "tool_use": {"type", "id", "name", "input", "cache_control"},
          "tool_result": {"type", "tool_use_id", "content", "is_error", "cache_control"},
          "thinking": {"type", "thinking", "signature"}, "redacted_thinking": {"type", "data"},
          "tool_removal": {"type", "tool"}, "tool_addition": {"type", "tool"}, "image": {"type", "source", "cache_control"}}
BOUND = ('messages.{}.content.{}: Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the '
         'block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".')


def refused(message):
    from emulators import Refused
    return Refused(400, {"type": "error", "error": {"type": "invalid_request_error", "message": message}, "request_id": "req_1"})


def ensure(right, message):
    if not right:
        raise refused(message)


def canonical(value):
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def listed(content):
    if content is None:
        return []
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def bare(block):
    return {name: value for name, value in block.items() if name != "cache_control"}


def merged(body):
    """(index, role, message, blocks) of each turn; neighbours of one role are one."""
    turns = []
    for at, message in enumerate(body["messages"]):
        blocks = [(at, number, block) for number, block in enumerate(listed(message["content"]))]
        if turns and turns[-1][0] == message["role"] != "system":
            turns[-1][2].extend(blocks)
        else:
            turns.append((message["role"], message, blocks))
    return turns


def first_words(body):
    return next((block.get("text", "") for message in body["messages"] if message["role"] == "user"
                 for block in listed(message["content"]) if "[" in block.get("text", "")), "")


def turns(body):
    roles = [(message["role"], all(block["type"] == "tool_result" for block in listed(message["content"]))) for message in body["messages"]]
    last = max(at for at, (role, results) in enumerate(roles) if role == "user" and not results)
    count = lambda some: sum(role == "assistant" for role, _ in some)
    return count(roles), count(roles[last:])


def offered(body):
    if (body.get("tool_choice") or {}).get("type") == "none":
        return ()
    gone = set()
    for message in body["messages"]:
        for block in listed(message["content"]) if message["role"] == "system" else ():
            if block["type"] == "tool_removal":
                gone.add(block["tool"]["name"])
            elif block["type"] == "tool_addition":
                gone.discard(block["tool"]["name"])
    return tuple(tool["name"] for tool in body.get("tools") or [] if tool["name"] not in gone)


def is_told_final(body):
    return "no more tool calls" in canonical(body["messages"][-2:]).lower()


def thinks(body):
    kind = (body.get("thinking") or {}).get("type")
    return kind in ("adaptive", "enabled") or (kind is None and "5-5" in body["model"])


def manner(body):
    """What restarts the cache of the messages when it is changed."""
    thinking = {name: value for name, value in (body.get("thinking") or {}).items() if name in ("type", "budget_tokens")}
    output = body.get("output_config") or {}
    return canonical([body.get("tool_choice") or {"type": "auto"}, thinking, output.get("effort"), output.get("task_budget")])


class Prompt:
    """A request, read block by block."""

    def __init__(self):
        self.head, self.tail, self.marks, self.unmarked, self.manner = [], [], [], 0, ""
        # What a thought that comes next would hold, the thought before it, and how that prefix came to be.
        self.prefix, self.thought, self.trace = b"", "", []

    def extend(self, *parts):
        self.prefix = digest(self.prefix, *parts)
        self.trace.append((self.prefix, " ".join(parts)[:160]))


def check(server, model, body, headers, call):
    betas = {word.strip() for line in headers.get_all("anthropic-beta") or [] for word in line.split(",")}
    needs = lambda what: ensure(not server.checks_betas or BETAS[what] in betas, f"{what}: Extra inputs are not permitted")
    declared = {tool["name"] for tool in body.get("tools") or []}
    binding = (body.get("thinking") or {}).get("block_binding")
    if binding is not None:
        needs("binding")
    task = (body.get("output_config") or {}).get("task_budget")
    if task is not None:
        needs("task")
        ensure(task["type"] == "tokens" and task["total"] >= 20_000, "output_config.task_budget.total: must be at least 20000")
    drops = (binding or {}).get("prefix_mismatch_behavior") == "drop_block"
    prompt = Prompt()
    prompt.manner = manner(body)
    for tool in body.get("tools") or []:
        add(prompt, prompt.head, tool, canonical(bare(tool)))
    for block in listed(body.get("system")):
        add(prompt, prompt.head, block, canonical(bare(block)))
    all_turns = merged(body)
    ensure(all_turns and all_turns[-1][0] != "assistant", "This model does not support assistant message prefill.")
    last_user = max(at for at, (role, _, _) in enumerate(all_turns) if role == "user")
    open_calls, is_broken, dropped, lost = set(), False, [], []
    for at, (role, message, blocks) in enumerate(all_turns):
        if role == "system":
            ensure(model.takes_instructions, "role 'system' is not supported on this model")
            before, after = all_turns[at - 1][0] if at else None, all_turns[at + 1][0] if at + 1 < len(all_turns) else None
            ensure(before in ("user", "system"), f"messages: a system message must follow a user turn, not {before}")
            ensure(after in (None, "assistant", "system"), "messages: a system message must be last or followed by an assistant turn")
            clears = message.get("clear_at") == "next_user_message"
            if "clear_at" in message:
                needs("clear_at")
            for _, _, block in blocks:
                ensure(set(block) <= BLOCKS.get(block["type"], set()), f"messages: {block}: Extra inputs are not permitted")
                ensure(not clears or block["type"] == "text" and "cache_control" not in block, "clear_at: text only")
                if block["type"].startswith("tool_"):
                    needs("tools")
                    ensure(block["tool"]["name"] in declared, "tool_reference_unresolved")
                if clears:
                    prompt.unmarked += tokens(block["text"]) if at > last_user else 0
                else:
                    add(prompt, prompt.tail, block, canonical([role, bare(block)]), is_bound=False)
            prompt.extend(role, canonical([[bare(block) for _, _, block in blocks], message.get("clear_at")]))
            continue
        results = {block["tool_use_id"] for _, _, block in blocks if block["type"] == "tool_result"}
        ensure(open_calls == results, f"messages: `tool_use` ids {open_calls} and `tool_result` ids {results}")
        kinds = [block["type"] == "tool_result" for _, _, block in blocks]
        ensure(kinds == sorted(kinds, reverse=True), "`tool_result` blocks must come first")
        open_calls = {block["id"] for _, _, block in blocks if block["type"] == "tool_use"}
        prompt.extend("role", role)
        for index, number, block in blocks:
            kind, place = block["type"], f"messages.{index}.content.{number}"
            ensure(set(block) <= BLOCKS.get(kind, set()), f"{place}: {set(block)}: Extra inputs are not permitted")
            if kind == "thinking":
                signed = read(block, place)
                if signed["model"] != model.name:
                    call.foreign += 1
                    continue
                is_right = signed["prefix"] == prompt.prefix.hex() and (not prompt.thought or signed["before"] == prompt.thought)
                if server.binds and model.is_bound and (is_broken or not is_right):
                    if not is_broken:
                        call.why = changed(server, signed, prompt)
                    is_broken = True
                    ensure(drops, BOUND.format(index, number) + f" {call.why}")
                    lost.append(signed["id"])
                    dropped.append({"type": "thinking_dropped", "path": place, "reason": "prefix_binding_mismatch"})
                    continue
                prompt.thought = signed["id"]
                add(prompt, prompt.tail, block, canonical([role, block]), is_bound=False)
                continue
            if kind == "text":
                ensure(block["text"].strip(), "messages: text content blocks must contain non-whitespace text")
            add(prompt, prompt.tail, block, canonical([role, bare(block)]))
    if (body.get("cache_control") or {}).get("type"):
        prompt.marks.append(len(prompt.head) + len(prompt.tail))
    ensure(len(prompt.marks) <= 4, f"A maximum of 4 blocks with cache_control may be provided. Found {len(prompt.marks)}.")
    call.dropped, prompt.dropped = tuple(lost), dropped
    return prompt


def add(prompt, blocks, block, text, is_bound=True):
    blocks.append(text)
    if is_bound:
        prompt.extend(canonical(bare(block)))
    if "cache_control" in block:
        prompt.marks.append(len(prompt.head) + len(prompt.tail))


def read(block, place):
    try:
        signed = json.loads(block["signature"])
        right = signed["text"] == digest(block["thinking"]).hex()
    except (ValueError, KeyError):
        right = False
    ensure(right, f"{place}: Invalid `signature` in `thinking` block")
    return signed


def changed(server, signed, prompt):
    """What stands before a thought now, and stood there then."""
    then = server.prefixes.get(signed["prefix"], [])
    if signed["prefix"] == prompt.prefix.hex():
        return f"the thought before it is {prompt.thought}, and was {signed['before']}"
    at = next((at for at, (one, other) in enumerate(zip(then, prompt.trace)) if one[0] != other[0]), min(len(then), len(prompt.trace)))
    show = lambda trace: trace[at][1] if at < len(trace) else "nothing"
    return f"at {at} of {len(then)}: was {show(then)!r}, is {show(prompt.trace)!r}"


def bill(cache, prompt):
    return cache.bill(prompt.head, prompt.tail, prompt.manner, prompt.marks, prompt.unmarked)


def events(server, model, body, blocks, call, prompt):
    """The events of an answer, its tokens, and its blocks as they would come back."""
    usage = {"input_tokens": call.bill.plain, "cache_read_input_tokens": call.bill.cached,
             "cache_creation_input_tokens": call.bill.written, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": model.name, "content": [], "stop_reason": None,
               "stop_sequence": None, "usage": usage}
    if (body.get("thinking") or {}).get("block_binding"):
        message["input_transformations"] = prompt.dropped
    out, left, sent, thought = [{"type": "message_start", "message": message}], body["max_tokens"], [], 0
    prompt.extend("role", "assistant")
    is_limited = False
    for at, (kind, *what) in enumerate(blocks):
        size = sum(tokens(canonical(part)) for part in what)
        if size > left:
            is_limited = True
            break
        left -= size
        if kind == "thought":
            thought += size
        block, pieces = written(server, model, prompt, call, kind, what, at)
        sent.append(block)
        start = {**block, **{"thinking": {"thinking": "", "signature": ""}, "text": {"text": ""}, "tool_use": {"input": {}}}[block["type"]]}
        out.append({"type": "content_block_start", "index": at, "content_block": start})
        out += [{"type": "content_block_delta", "index": at, "delta": piece} for piece in pieces]
        out.append({"type": "content_block_stop", "index": at})
    reason = "max_tokens" if is_limited else "tool_use" if any(kind == "call" for kind, *_ in blocks) else "end_turn"
    wrote = max(1, body["max_tokens"] - left)
    out.append({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None},
                "usage": {"output_tokens": wrote, "output_tokens_details": {"thinking_tokens": thought}}})
    out.append({"type": "message_stop"})
    return [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in out], wrote, sent


def written(server, model, prompt, call, kind, what, at):
    """A block, and the deltas in which it comes."""
    if kind == "thought":
        prefix = prompt.prefix.hex()
        server.prefixes[prefix] = list(prompt.trace)
        signed = {"model": model.name, "id": f"{call.at}.{at}", "prefix": prefix, "before": prompt.thought, "text": digest(what[0]).hex()}
        prompt.thought = signed["id"]
        block = {"type": "thinking", "thinking": what[0], "signature": json.dumps(signed)}
        pieces = [{"type": "thinking_delta", "thinking": what[0][start:start + 400]} for start in range(0, len(what[0]), 400)]
        return block, [*pieces, {"type": "signature_delta", "signature": block["signature"]}]
    if kind == "text":
        block = {"type": "text", "text": what[0]}
        pieces = [{"type": "text_delta", "text": what[0][start:start + 20]} for start in range(0, len(what[0]), 20)]
    else:
        name, given = what
        block = {"type": "tool_use", "id": f"toolu_{call.at}_{at}", "name": name, "input": given}
        text = json.dumps(given)
        pieces = [{"type": "input_json_delta", "partial_json": text[start:start + 40]} for start in range(0, len(text), 40)]
    prompt.extend(canonical(block))
    return block, pieces


def whole(events):
    raise refused("only streams are served here")
