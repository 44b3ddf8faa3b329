#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/report/files.hpp"

namespace cudp {

/// Writes report.html, PRIVACY.txt and README.md into a release folder, each atomically. An
/// existing README.md keeps its front matter. files: the content of the folder. Returns the paths.
/// Throws InputError if a file is damaged.
std::vector<std::filesystem::path> write_release_pages(const std::filesystem::path& release,
                                                       const ReportFiles& files);

/// Writes private/report.html, readable by its owner only, if figures of the run are private: the
/// report with these figures, headed NOT FOR RELEASE. Returns the paths.
std::vector<std::filesystem::path> write_private_page(const std::filesystem::path& run);

}  // namespace cudp
