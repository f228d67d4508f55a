"""Answers as families of models write them: short templates and answers of our own with the same marks."""

from __future__ import annotations

from msgspec import Struct

WEATHER = ("weather", {"town": "Köln", "days": 2})
CLOCK: tuple[str, dict[str, object]] = ("clock", {})
ARGUMENTS = '{"town": "Köln", "days": 2}'


class Family(Struct, frozen=True):
    """`template` has the marks of a chat template, `tail` is the end of a rendered prompt."""

    name: str
    template: str
    tail: str
    answer: str
    thought: str = ""
    text: str = ""
    calls: tuple[tuple[str, dict[str, object]], ...] = ()
    tokens: tuple[str, ...] = ()


def _tools(*marks: str) -> str:
    return "{% if tools %}" + "".join(marks) + "{% endif %}"


THINKING = (
    Family("plain", "{{ messages }}", "<a>", "Hi <b> there.", text="Hi <b> there."),
    Family("written tag", "<think></think>", "<a>\n", "<think>\nOh.\n</think>\n\nHi.", "Oh.", "Hi."),
    Family("tag in the prompt", "<think></think>", "<a>\n<think>\n", "Oh.\n</think>\n\nHi.", "Oh.", "Hi."),
    Family("end in a line", "</think>", "<a><think>", "Oh.\nSo.</think>The **J**.", "Oh.\nSo.", "The **J**."),
    Family("tag again", "<think></think>", "<a><think>\n", "<think>\nOh.</think>Hi.", "Oh.", "Hi."),
    Family("closed prompt", "<think></think>", "<a><think>\n\n</think>\n\n", "Hi.", "", "Hi."),
    Family("empty thought", "<think></think>", "<a>\n", "<think>\n\n</think>\n\nHi.", "", "Hi."),
    Family("cut off", "<think></think>", "<a><think>\n", "Oh. </thi", "Oh. </thi"),
    Family("square", "[THINK][/THINK]", "[/INST]", "[THINK]Oh.[/THINK]Hi.", "Oh.", "Hi."),
    Family("seed", "<seed:think>", "<a>\n", "<seed:think>Oh.</seed:think>\nHi.", "Oh.", "Hi."),
    Family(
        "response tags",
        "Write between <think></think> and <response></response>.",
        "<a>",
        "<think>Oh.</think>\n<response>Hi.</response>",
        "Oh.",
        "Hi.",
    ),
    Family(
        "answer tags",
        "{{ c.split('</think>')[-1].replace('<answer>', '').replace('</answer>', '') }}",
        "<a>",
        "<think>\nOh.\n</think>\n<answer>\nHi: `<answer>`, `</answer>`.\n</answer>",
        "Oh.",
        "Hi: `<answer>`, `</answer>`.",
    ),
    Family(
        "answer tags, cut off",
        "</think><answer></answer>",
        "<a><think>\n\n</think>\n",
        "<answer>\nHi.\n</answ",
        "",
        "Hi.\n</answ",
    ),
    Family("no answer tags", "</think>", "<a>", "<answer>Hi.</answer>", "", "<answer>Hi.</answer>"),
    Family("quoted response tags", "", "<think>", "O</think><response> <b>", "O", "<response> <b>"),
    Family(
        "actions",
        "<|START_THINKING|>",
        "<|CHATBOT_TOKEN|>",
        "<|START_THINKING|>Oh.<|END_THINKING|><|START_RESPONSE|>Hi.<|END_RESPONSE|>",
        "Oh.",
        "Hi.",
    ),
    Family(
        "words",
        "Here are my reasoning steps:\n[BEGIN FINAL RESPONSE]",
        "<a>\nHere are my reasoning steps:\n",
        "Oh.\n[BEGIN FINAL RESPONSE]\nHi.\n[END FINAL RESPONSE]",
        "Oh.",
        "Hi.\n",
    ),
    Family("gemma", "<|channel>", "<|turn>model\n", "<|channel>thought\nOh.\n<channel|>Hi.", "Oh.", "Hi."),
    Family("gemma, open", "<|channel>", "model\n<|channel>thought\n", "Oh.\n<channel|>Hi.", "Oh.", "Hi."),
    Family(
        "harmony",
        "<|start|><|channel|><|message|>",
        "<|start|>assistant",
        "<|channel|>analysis<|message|>Oh.<|end|><|start|>assistant<|channel|>final<|message|>Hi <b>.",
        "Oh.",
        "Hi <b>.",
    ),
    Family(
        "to self",
        "<|start|><|message|><|eom|> to=self",
        "<|start|>assistant",
        " to=self<|message|>Oh.<|eom|><|start|>assistant to=user<|message|>Hi.",
        "Oh.",
        "Hi.",
    ),
    Family(
        "content marks",
        "<|message_model|><|content_text|>",
        "<|message_model|>",
        "<|content_thinking|>Oh.<|end_message|><|message_model|><|content_text|>Hi.<|end_message|>",
        "Oh.",
        "Hi.",
    ),
    Family(
        "begin marks",
        "<|begin|><|think|><|content|>",
        "<|begin|>assistant",
        "<|think|>Oh.<|end|><|begin|>assistant<|content|>Hi.",
        "Oh.",
        "Hi.",
    ),
    Family(
        "open and close",
        "'<|open|>' ~ tag ~ '<|sep|>'",
        '<|open|>message role="assistant"<|sep|><|open|>think<|sep|>',
        "Oh.<|close|>think<|sep|><|open|>response<|sep|>Hi.<|close|>response<|sep|><|end_of_msg|>",
        "Oh.",
        "Hi.",
    ),
    Family(
        "formatted tags",
        "{% set t = '<think{}>'.format(':opensource') %}",
        "<｜hy_Assistant:opensource｜><think:opensource>",
        "Oh.</think:opensource>Hi.",
        "Oh.",
        "Hi.",
    ),
)

_FUNCTION = (
    "<function=weather>\n<parameter=town>\nKöln\n</parameter>\n<parameter=days>\n2\n</parameter>\n</function>"
)
_INVOKE = (
    '<invoke name="weather">\n<parameter name="town">Köln</parameter>\n'
    '<parameter name="days">2</parameter>\n</invoke>'
)
_MM = "]<]minimax[>["

CALLING = (
    Family(
        "name and JSON",
        "[gMASK]<sop><|observation|>" + _tools("{{ tools }}"),
        "<|assistant|>",
        f"weather\n{ARGUMENTS}<|assistant|>clock\n{{}}",
        calls=(WEATHER, CLOCK),
    ),
    Family(
        "text, then name and JSON",
        "[gMASK]<sop><|observation|>" + _tools("{{ tools }}"),
        "<|assistant|>",
        f"\nSee.<|assistant|>weather\n{ARGUMENTS}",
        text="\nSee.",
        calls=(WEATHER,),
    ),
    Family(
        "name and JSON in a text",
        "[gMASK]<sop><|observation|>" + _tools("{{ tools }}"),
        "<|assistant|>",
        "clock\n{} is how to call it.",
        text="clock\n{} is how to call it.",
    ),
    Family(
        "name of an unknown function and JSON",
        "[gMASK]<sop><|observation|>" + _tools("{{ tools }}"),
        "<|assistant|>",
        "watch\n{}",
        text="watch\n{}",
    ),
    Family(
        "lines of Python between tags",
        _tools("<function_calls>"),
        "<a><think>",
        'Oh.</think>See.\n<function_calls>weather(town="Köln", days=2)\nclock()</function_calls>',
        "Oh.",
        "See.",
        calls=(WEATHER, CLOCK),
    ),
    Family(
        "Python list of an unknown template",
        _tools("Call functions in a list."),
        "<a>",
        "[weather(town=Köln, days=2), clock()]",
        calls=(WEATHER, CLOCK),
    ),
    Family(
        "Python list of another template",
        _tools("<tool_call>"),
        "<a>",
        "\n[ clock ( ) ]",
        calls=(CLOCK,),
    ),
    Family(
        "list that calls nothing",
        _tools("Call functions in a list."),
        "<a>",
        "[clock]: see [watch()]",
        text="[clock]: see [watch()]",
    ),
    Family(
        "hermes between answer tags",
        _tools("<tool_call></think><answer></answer>"),
        "<a>",
        '<answer>\nSee.\n</answer>\n<tool_call>\n{"name": "clock", "arguments": {}}\n</tool_call>',
        text="See.",
        calls=(CLOCK,),
    ),
    Family(
        "hermes",
        _tools("<tool_call>"),
        "<a>\n",
        f'See.\n<tool_call>\n{{"name": "weather", "arguments": {ARGUMENTS}}}\n</tool_call>\n'
        '<tool_call>\n{"name": "clock", "arguments": {}}\n</tool_call>',
        text="See.",
        calls=(WEATHER, CLOCK),
    ),
    Family(
        "function tags",
        _tools("<tool_call>\n<function=f>"),
        "<a>\n<think>\n",
        f"Oh.\n</think>\n\nSee.\n<tool_call>\n{_FUNCTION}\n</tool_call>\n"
        "<tool_call>\n<function=clock>\n</function>\n</tool_call>",
        "Oh.",
        "See.",
        (WEATHER, CLOCK),
    ),
    Family(
        "argument keys",
        _tools("<tool_call>", "<arg_key>"),
        "<a>",
        "See.\n<tool_call>weather\n<arg_key>town</arg_key>\n<arg_value>Köln</arg_value>\n"
        "<arg_key>days</arg_key>\n<arg_value>2</arg_value>\n</tool_call><tool_call>clock</tool_call>",
        text="See.",
        calls=(WEATHER, CLOCK),
    ),
    Family(
        "seed",
        _tools("<seed:tool_call>"),
        "<a>",
        f"<seed:tool_call>\n{_FUNCTION}\n</seed:tool_call>",
        calls=(WEATHER,),
    ),
    Family(
        "minimax",
        _tools("<minimax:tool_call>"),
        "<a>",
        f"<minimax:tool_call>\n{_INVOKE}\n</minimax:tool_call>",
        calls=(WEATHER,),
    ),
    Family(
        "nested elements",
        _tools(_MM),
        "<a>",
        f'{_MM}<tool_call>\n{_MM}<invoke name="weather">{_MM}<town>Köln{_MM}</town>{_MM}<days>2'
        f"{_MM}</days>{_MM}<list>{_MM}<item>{_MM}<k>x{_MM}</k>{_MM}</item>{_MM}</list>{_MM}</invoke>\n"
        f"{_MM}</tool_call>",
        calls=(("weather", {"town": "Köln", "days": 2, "list": [{"k": "x"}]}),),
    ),
    Family(
        "dsml",
        _tools("｜DSML｜"),
        "<a>",
        "<｜DSML｜function_calls>\n"
        '<｜DSML｜invoke name="weather">\n'
        '<｜DSML｜parameter name="town" string="true">Köln</｜DSML｜parameter>\n'
        '<｜DSML｜parameter name="days" string="false">2</｜DSML｜parameter>\n</｜DSML｜invoke>\n'
        "</｜DSML｜function_calls>",
        calls=(WEATHER,),
    ),
    Family(
        "deepseek with fences",
        _tools("<｜tool▁calls▁begin｜>"),
        "<a>",
        f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n{ARGUMENTS}\n```"
        "<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>clock\n```json\n{}\n```<｜tool▁call▁end｜>"
        "<｜tool▁calls▁end｜>",
        calls=(WEATHER, CLOCK),
    ),
    Family(
        "deepseek",
        _tools("<｜tool▁calls▁begin｜>"),
        "<a>",
        f"See.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>weather<｜tool▁sep｜>{ARGUMENTS}<｜tool▁call▁end｜>"
        "<｜tool▁calls▁end｜>",
        text="See.",
        calls=(WEATHER,),
    ),
    Family(
        "kimi",
        _tools("<|tool_call_argument_begin|>"),
        "<a>",
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.weather:0<|tool_call_argument_begin|>"
        f"{ARGUMENTS}<|tool_call_end|><|tool_call_begin|>functions.clock:1<|tool_call_argument_begin|>{{}}"
        "<|tool_call_end|><|tool_calls_section_end|>",
        calls=(WEATHER, CLOCK),
    ),
    Family(
        "open and close",
        _tools("<|open|><|sep|>"),
        "<a><|open|>think<|sep|>",
        "Oh.<|close|>think<|sep|><|open|>response<|sep|>See.<|close|>response<|sep|><|open|>tools<|sep|>"
        '<|open|>call tool="weather" index="1"<|sep|><|open|>argument key="town" type="string"<|sep|>Köln'
        '<|close|>argument<|sep|><|open|>argument key="days" type="number"<|sep|>2<|close|>argument<|sep|>'
        "<|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|>",
        "Oh.",
        "See.",
        (WEATHER,),
    ),
    Family(
        "mistral, list",
        _tools("[TOOL_CALLS]"),
        "[/INST]",
        f'[TOOL_CALLS] [{{"name": "weather", "arguments": {ARGUMENTS}, "id": "abc"}}]',
        calls=(WEATHER,),
    ),
    Family(
        "mistral",
        _tools("[TOOL_CALLS]"),
        "[/INST]",
        f"See.[TOOL_CALLS]weather[ARGS]{ARGUMENTS}[TOOL_CALLS]clock[ARGS]{{}}",
        text="See.",
        calls=(WEATHER, CLOCK),
    ),
    Family(
        "mistral with ids",
        _tools("[TOOL_CALLS]"),
        "[/INST]",
        f"[TOOL_CALLS]weather[CALL_ID]clock1234[ARGS]{ARGUMENTS}",
        calls=(WEATHER,),
    ),
    Family(
        "python list",
        _tools("<|tool_call_start|>"),
        "<a>",
        "See.<|tool_call_start|>[weather(town='Köln', days=2), clock()]<|tool_call_end|>",
        text="See.",
        calls=(WEATHER, CLOCK),
    ),
    Family(
        "bare python list",
        _tools("[func_name1(a=b), func_name2(c)]"),
        "<a>",
        "[weather(town=Köln, days=2), clock()]",
        calls=(WEATHER, CLOCK),
    ),
    Family(
        "bare JSON",
        _tools('{"name": f, "parameters": {}}'),
        "<a>",
        f'{{"name": "weather", "parameters": {ARGUMENTS}}}',
        calls=(WEATHER,),
    ),
    Family(
        "bare JSON, several",
        _tools("<|python_tag|>"),
        "<a>",
        f'{{"name": "weather", "parameters": {ARGUMENTS}}}; {{"name": "clock", "parameters": {{}}}}',
        calls=(WEATHER, CLOCK),
    ),
    Family(
        "python tag",
        _tools("<|python_tag|>"),
        "<a>",
        f'<|python_tag|>{{"type": "function", "name": "weather", "parameters": {ARGUMENTS}}}',
        calls=(WEATHER,),
    ),
    Family(
        "functools",
        _tools("functools[...]"),
        "<a>",
        f' functools[{{"name": "weather", "arguments": {ARGUMENTS}}}]',
        calls=(WEATHER,),
    ),
    Family(
        "tokens alone",
        _tools("be brief"),
        "<a>",
        f'<|tool_call|>[{{"name": "weather", "arguments": {ARGUMENTS}}}]<|/tool_call|>',
        calls=(WEATHER,),
        tokens=("<|tool_call|>", "<|/tool_call|>"),
    ),
    Family(
        "actions",
        _tools("<|START_ACTION|>"),
        "<a>",
        f'<|START_ACTION|>[\n{{"tool_call_id": "0", "tool_name": "weather", "parameters": {ARGUMENTS}}}\n]'
        "<|END_ACTION|>",
        calls=(WEATHER,),
    ),
    Family(
        "fenced actions",
        _tools('Action:```json "tool_name"'),
        "<a>",
        f'See.\nAction: ```json\n[{{"tool_name": "weather", "parameters": {ARGUMENTS}}}]\n```',
        text="See.",
        calls=(WEATHER,),
    ),
    Family(
        "name as key",
        _tools("<|tools_prefix|>"),
        "<a>",
        f'<|tools_prefix|>[{{"weather": {ARGUMENTS}}}, {{"clock": {{}}}}]<|tools_suffix|>',
        calls=(WEATHER, CLOCK),
    ),
    Family(
        "gemma",
        _tools("<|tool_call><tool_call|>"),
        "<a>",
        '<|tool_call>call:weather{town:<|"|>Köln<|"|>,days:2}<tool_call|>',
        calls=(WEATHER,),
    ),
    Family(
        "escaped strings",
        _tools("<start_function_call>"),
        "<a>",
        "<start_function_call>call:weather{town:<escape>Köln<escape>,days:2}<end_function_call>",
        calls=(WEATHER,),
    ),
    Family(
        "function in angle brackets",
        _tools("<function="),
        "<a>",
        f"<function=weather>{ARGUMENTS}</function><function=clock>{{}}</function>",
        calls=(WEATHER, CLOCK),
    ),
    Family(
        "harmony",
        _tools("<|start|><|channel|><|message|>"),
        "<|start|>assistant",
        "<|channel|>analysis<|message|>Oh.<|end|>"
        "<|start|>assistant<|channel|>commentary to=functions.weather "
        f"<|constrain|>json<|message|>{ARGUMENTS}<|call|>",
        "Oh.",
        calls=(WEATHER,),
    ),
    Family(
        "content marks",
        _tools("<|message_model|><|content_text|><|content_invoke_tool_json|>"),
        "<|message_model|>",
        f'weather<|content_invoke_tool_json|>{{"name":"weather","args":{ARGUMENTS}}}<|end_message|>',
        calls=(WEATHER,),
    ),
    Family(
        "recipients",
        _tools(">>>all"),
        ">>>",
        f"all\nSee.>>>weather\n{ARGUMENTS}>>>clock\n{{}}",
        text="See.",
        calls=(WEATHER, CLOCK),
    ),
    Family(
        "described in the system prompt",
        "{{ messages }}",
        "<a>",
        f'<tool_call>{{"name": "weather", "arguments": {ARGUMENTS}}}</tool_call>',
        calls=(WEATHER,),
    ),
)
