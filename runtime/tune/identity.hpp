#pragma once
#include <map>
#include <string>
#include <vector>

#include "runtime/sweep/request.hpp"
#include "runtime/sweep/trainings.hpp"

namespace cudp {

/// Facts, as texts by name, that must not change when an interrupted tuning is resumed, in addition
/// to the budget.
using TuningIdentity = std::map<std::string, std::string>;

/// Returns these facts: digests of the candidates' settings (from all sources), of the schema and
/// of the model files, and the unit of privacy. Paths in settings are made absolute. Throws
/// InputError if a file cannot be read.
TuningIdentity identity_of(const std::vector<SweepCell>& candidate_cells, const DataFacts& facts);

}  // namespace cudp
