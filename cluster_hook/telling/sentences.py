"""Sentences of the hook, in both languages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from cluster_analysis.sentences.phrase import fill
from cluster_analysis.sentences.texts import Template
from cluster_run.findings import Place, Verdict
from cluster_run.said.chinese import Language

SENTENCES: Mapping[str, Template] = {
    "degraded": ("degraded", "性能劣化"),
    "healthy": ("healthy", "正常"),
    "unknown": ("unknown", "无法判断"),
    "rank": ("rank {rank}", "卡 {rank}"),
    "host": ("host {host}", "主机 {host}"),
    "device": ("device {device}", "设备 {device}"),
    "headline": ("{verdict}: {rest}", "{verdict}：{rest}"),
    "cost": ("{said} ({cost} a step{share}).", "{said}（每步损失 {cost}{share}）。"),
    "share": (", {share} of the step", "，占 {share}"),
    "more": ("{n} more {n:finding|findings}.", "另有 {n} 个发现项。"),
    "nothing": (
        "{n} of {expected} ranks analysed, nothing to look at.",
        "已分析 {expected} 张卡中的 {n} 张，无需处理。",
    ),
    "could_not_tell": (
        "{n} of {expected} ranks analysed, could not tell if anything is wrong{why}.",
        "已分析 {expected} 张卡中的 {n} 张，无法判断是否有问题{why}。",
    ),
    "problems": ("{n} {n:problem|problems}: {first}.", "{n} 个问题：{first}。"),
    "job": ("job {job}: {said}{missing}{where}", "作业 {job}：{said}{missing}{where}"),
    "ended": (" ({state})", "（{state}）"),
    "missing": (" Not all was collected: {reason:said}", "采集不完整：{reason:said}"),
    "where": (" See {path}", "见 {path}"),
    "not_analysed": ("not analysed: {reason:said}", "未分析：{reason:said}"),
}


def say(key: str, language: Language, **values: object) -> str:
    """Return a sentence.

    Raises:
        KeyError: there is none, or a value is missing.
    """
    return fill(SENTENCES[key], values).of(language)


def verdict_name(verdict: str, language: Language) -> str:
    """Return what a verdict is called; one that is not known keeps its own name."""
    return say(verdict, language) if verdict in get_args(Verdict) else verdict


def place_text(place: Place, language: Language) -> str:
    """Return where a rank is, as every report tells it: `卡 13 = 主机 2 / 设备 5`."""
    parts = [say("host", language, host=place.host)] if place.host is not None else []
    parts += [say("device", language, device=place.device)] if place.device is not None else []
    rank = say("rank", language, rank=place.rank)
    return f"{rank} = {' / '.join(parts)}" if parts else rank
