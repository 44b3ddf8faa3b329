#pragma once
// Code shared by `cudp eval` and `cudp predict`: a released model, and the data to score.
#include <string>
#include <vector>

#include "runtime/config/config.hpp"
#include "runtime/config/option.hpp"
#include "runtime/results/released_model.hpp"
#include "runtime/results/scorer.hpp"

namespace cudp {

/// Returns the options that both commands have: the data, how they are read, and the machine.
std::vector<Option> scoring_options();

/// Returns the scoring request that these options describe. Does not set labels, ids and group_by,
/// which the commands set.
ScoringRequest scoring_request(const TrainConfig& config);

/// Returns the text for a progress line: "scoring 'patients.csv'".
std::string scoring_text(const std::string& dataset);

/// Reads a released model from a run folder, its release folder or a file. If the options name a
/// file with the embedding of words, that is used.
ReleasedModel model_for(const TrainConfig& config, const std::string& place);

}  // namespace cudp
