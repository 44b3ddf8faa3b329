#pragma once
#include <filesystem>

#include "runtime/audit/audit.hpp"

namespace cudp {

/// Draws the attacker's scores of members and of others, and the bounds beside the certificate.
/// False where there is no gnuplot, or it drew nothing. Throws Error as run_gnuplot does.
bool draw_audit(const AuditResult& result, const std::filesystem::path& picture);

}  // namespace cudp
