#pragma once
#include <optional>
#include <string>
#include <vector>

#include "runtime/cli/answer.hpp"

namespace cudp {

/// Adds up what several runs on the same data spend: as chosen on the way, and fixed ahead
/// (privacy/several_runs.hpp). runs: each as read_run_certificate has it; unfinished ones count by
/// their plan. delta: of all together; that which all the certificates state, if not given.
/// fixed_ahead: the user states that no setting was chosen by looking at an earlier run, so that
/// the smaller number is the answer. Throws InputError, also where certificates differ in what
/// neighbours are, or one is given twice, and std::exception as privacy/ does.
Answer several_runs(const std::vector<std::string>& runs, std::optional<double> delta,
                    bool fixed_ahead);

}  // namespace cudp
