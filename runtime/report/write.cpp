#include "runtime/report/write.hpp"

#include <system_error>

#include "runtime/base/files.hpp"
#include "runtime/report/pages.hpp"

namespace fs = std::filesystem;

namespace cudp {

std::vector<fs::path> write_release_pages(const fs::path& release, const ReportFiles& files,
                                          Sync sync) {
  const Pages pages = make_pages(files);
  const fs::path card = release / kModelCard;
  std::error_code none;
  std::string front;
  if (fs::is_regular_file(card, none)) front = split_card(read_user_file(card)).front_matter;
  if (front.empty()) front = front_matter_of(files);
  write_file(release / kReportPage, pages.report, 0644, sync);
  write_file(release / kPrivacyText, pages.privacy, 0644, sync);
  write_file(card, front + pages.card, 0644, sync);
  return {release / kReportPage, release / kPrivacyText, card};
}

std::vector<fs::path> write_private_page(const fs::path& run, Sync sync) {
  const ReportFiles files = read_run_files(run);
  if (!files.has_unpaid) return {};
  const fs::path page = run / "private" / kReportPage;
  write_file(page, page::to_html(privacy_report(files)), 0600, sync);
  return {page};
}

}  // namespace cudp
