#pragma once
#include <string>

#include "runtime/report/document.hpp"
#include "runtime/report/run_facts.hpp"

namespace cudp {

enum class Detail { page, card };

/// Returns a sentence for a report that describes the run: which model was trained on which data
/// set to predict what.
std::string what_it_is(const RunFacts& facts);

/// Returns four questions with short answers: whose privacy, how much, what is not covered, and
/// whether it may be published. detail: whether the answers are for the report page or for the
/// model card, which refer to different files.
page::Answers in_short(const RunFacts& facts, Detail detail);

/// Returns a page without sections, to which the caller adds some: it has the title, a description
/// of the run and, if the run must not be published, the reasons.
page::Document headed(const std::string& title, const RunFacts& facts);

}  // namespace cudp
