"""Thresholds for recordings of ranks or steps that differ in length."""

#: Windows of ranks that began and ended together differ by less: processes stop within a step.
OTHER_LENGTH_SHARE = 0.1
#: How often an operator ran is the same number of iterations where it agrees this well; kernels of the begin
#: and end of a window are counted in one of two ranks.
SAME_COUNT_SHARE = 0.02
#: Kinds of operators that must agree on the number of iterations: others depend on the data.
MOST_KINDS = 0.8
#: A step that was cut is recognised against the steps before it, which must be alike.
FEWEST_WHOLE_STEPS = 2
