#pragma once
#include <string>

#include "runtime/tune/publish.hpp"

namespace cudp {

/// Returns the certificate of a tuning: that of the released training, with the guarantee of the
/// whole tuning, its distribution and the spending of each candidate.
std::string tuned_certificate(const std::string& trained, const Winner& winner);

}  // namespace cudp
