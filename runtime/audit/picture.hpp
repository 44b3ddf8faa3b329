#pragma once
#include <filesystem>

#include "runtime/audit/audit.hpp"

namespace cudp {

/// Draws a PNG of the scores of members and non-members, and of the lower bounds next to the
/// certificate's epsilon, readable by the owner only. Returns false if gnuplot is missing or fails.
/// Throws Error if `picture` exists and is not a regular file, or cannot be written.
bool draw_audit(const AuditResult& result, const std::filesystem::path& picture);

}  // namespace cudp
