#pragma once
#include <vector>

#include "runtime/report/document.hpp"
#include "runtime/report/run_facts.hpp"

namespace cudp {

/// Returns the questions of NIST SP 800-226 about a claim of differential privacy, in sections: the
/// guarantee, the mechanism, the implementation, data and deployment. Each question has an answer
/// from the run's certificate and settings; if these do not answer it, the answer is "Not stated".
std::vector<page::Section> questions_of(const RunFacts& facts);

/// Returns a list, for a page, of the columns of the training table with their public bounds; empty
/// if the run was not trained on a table.
std::vector<page::Block> columns_of(const RunFacts& facts);

}  // namespace cudp
