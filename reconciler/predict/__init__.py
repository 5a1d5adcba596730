"""Stage 4: the clusters are looked at, and asked where looking is not enough."""

from reconciler.predict.ask import FIELD_MANAGER, compare, predict, prepare, with_silence
from reconciler.predict.look import PARALLEL, finish_look, greet, look, start_look
from reconciler.prediction import ClusterView, Conflict, Prediction

__all__ = [
    "FIELD_MANAGER",
    "PARALLEL",
    "ClusterView",
    "Conflict",
    "Prediction",
    "compare",
    "finish_look",
    "greet",
    "look",
    "predict",
    "prepare",
    "start_look",
    "with_silence",
]
