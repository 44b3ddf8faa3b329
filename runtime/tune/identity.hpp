#pragma once
#include <map>
#include <string>
#include <vector>

#include "runtime/sweep/request.hpp"
#include "runtime/sweep/trainings.hpp"

namespace cudp {

/// Names and texts of properties that must not change, in addition to the budget, when an
/// interrupted tuning is resumed, such as the digest of the candidates' settings.
using TuningIdentity = std::map<std::string, std::string>;

/// Returns the properties of a tuning that must not change when it is resumed: digests of the
/// settings of all candidates, of the schema and of the model files, and the unit of privacy. Paths
/// in settings are made absolute first. facts: properties of the data. Throws InputError if a file
/// cannot be read.
TuningIdentity identity_of(const std::vector<SweepCell>& candidate_cells, const DataFacts& facts);

}  // namespace cudp
