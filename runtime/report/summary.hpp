#pragma once
#include <string>

#include "runtime/report/document.hpp"
#include "runtime/report/run_facts.hpp"

namespace cudp {

enum class Detail { page, card };

/// Returns what the run is: a model, trained on a data set to predict something.
std::string what_it_is(const RunFacts& facts);

/// Returns four questions with short answers: whose privacy, how much, what is not covered, and
/// whether it may be published. detail: for the report page or the model card, which refer to
/// different places.
page::Answers in_short(const RunFacts& facts, Detail detail);

/// Returns a page without sections: its title, the run, whether it is for release, and why not.
page::Document headed(const std::string& title, const RunFacts& facts);

}  // namespace cudp
