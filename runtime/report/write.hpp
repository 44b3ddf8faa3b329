#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/base/files.hpp"
#include "runtime/report/files.hpp"

namespace cudp {

/// Writes the pages of a run, report.html, PRIVACY.txt and README.md, into its folder `release`,
/// each atomically. An existing README.md keeps its YAML header, which the user may have edited.
/// files: contents of the run's files in that folder. Returns the paths of the pages. Throws
/// InputError if a file is damaged.
std::vector<std::filesystem::path> write_release_pages(const std::filesystem::path& release,
                                                       const ReportFiles& files,
                                                       Sync sync = Sync::yes);

/// Writes private/report.html, readable by its owner only, if some metrics of the run are private:
/// the report with these metrics, headed NOT FOR RELEASE. Returns the path of the page; nothing if
/// it was not written.
std::vector<std::filesystem::path> write_private_page(const std::filesystem::path& run,
                                                      Sync sync = Sync::yes);

}  // namespace cudp
