#pragma once
#include <vector>

#include "runtime/report/document.hpp"
#include "runtime/report/run_facts.hpp"

namespace cudp {

/// Returns the questions of NIST SP 800-226 about a promise of differential privacy, in sections:
/// the guarantee, the mechanism, the implementation, data and deployment. Each is answered from
/// the certificate and the settings, or "Not stated".
std::vector<page::Section> questions_of(const RunFacts& facts);

/// Returns a list of the table's columns with their public bounds; empty if the run has no schema.
std::vector<page::Block> columns_of(const RunFacts& facts);

}  // namespace cudp
