#pragma once
#include <filesystem>

#include "runtime/audit/audit.hpp"

namespace cudp {

/// Draws the result of an audit as a PNG, readable by the owner only: the scores of members and
/// non-members, and the lower bounds next to the certificate's epsilon. Returns false if gnuplot is
/// missing or fails. Throws Error if `picture` exists and is not a regular file, or cannot be
/// written.
bool draw_audit(const AuditResult& result, const std::filesystem::path& picture);

}  // namespace cudp
