#include "runtime/results/curves.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>

#include <spdlog/fmt/fmt.h>

namespace cudp {
namespace {

const Metric& shown_metric(PredictionKind kind, const std::string& key) {
  const std::span<const Metric> all = metrics(kind);
  const auto found = std::ranges::find_if(all, [&](const Metric& m) { return key == m.key; });
  return found == all.end() ? all.front() : *found;
}

std::string script(const std::vector<MetricsRow>& rows, const std::string& title,
                   const std::string& key) {
  std::string s = gnuplot_header(title) + R"(set xlabel 'epoch'
set xrange [0:*]
)";
  const bool tested = !rows.front().test.empty();
  const Metric& metric = shown_metric(rows.front().test.kind, key);
  const bool percent = metric.text == percent_text;
  const std::string name = metric.name;
  const std::string what = name.starts_with("test ") ? name : "test " + name;
  const std::string axis = percent ? what + " (%)" : what;
  const bool is_private = std::isfinite(rows.back().epsilon);
  const char* const epsilon = rows.back().training_epsilon ? "epsilon of training" : "epsilon";
  bool any = false;
  s += "$rows << EOD\n";
  for (const MetricsRow& r : rows) {
    const double value = r.test.of(metric.key).value_or(0.0);
    any = any || std::isfinite(value);
    s += fmt::format("{} {} {}\n", r.epoch, (percent ? 100.0 : 1.0) * value,
                     is_private ? r.spent_by_training() : 0.0);
  }
  s += "EOD\n";
  if (!any) s += "set yrange [0:1]\n";  // gnuplot cannot find a range if there are no numbers
  const char* style = rows.size() > 1 ? "lines" : "points";
  if (!tested)
    return s + fmt::format(
                   "set ylabel 'epsilon spent'\nset yrange [0:*]\nunset key\n"
                   "plot $rows using 1:3 with {} lt 2 title '{}'\n",
                   style, epsilon);
  if (!is_private)
    return s + fmt::format(
                   "set ylabel '{1}'\nunset key\n"
                   "plot $rows using 1:2 with {0} lt 1 title '{2}'\n",
                   style, axis, what);
  // Each axis has the colour of its line.
  s += fmt::format(
      "set border 11\nset ytics textcolor lt 1\nset y2tics textcolor lt 2\n"
      "set ylabel '{}' textcolor lt 1\nset y2label 'epsilon spent' textcolor lt 2\n"
      "set y2range [0:*]\n",
      axis);
  s += fmt::format(
      "plot $rows using 1:2 with {0} lt 1 title '{1}', "
      "$rows using 1:3 axes x1y2 with {0} lt 2 dt 2 title '{2}'\n",
      style, what, epsilon);
  return s;
}

}  // namespace

std::string curve_metric(const std::vector<MetricsRow>& rows, const std::string& stated,
                         bool test_is_public) {
  if (stated == "accuracy") return "test_accuracy";
  if (!stated.empty()) {
    std::string key = stated;
    std::ranges::replace(key, '-', '_');
    return key;
  }
  if (rows.empty() || !test_is_public || rows.back().test.kind != PredictionKind::classes)
    return "test_accuracy";
  constexpr double kMostRows = 0.8;
  const Metrics& last = rows.back().test;
  if (!(last.of("majority_baseline").value_or(0.0) >= kMostRows)) return "test_accuracy";
  return std::isfinite(last.of("auc").value_or(std::nan(""))) ? "auc" : "balanced_accuracy";
}

bool start_curves(const std::vector<MetricsRow>& rows, const std::string& title,
                  const std::filesystem::path& picture, const std::string& metric, unsigned mode,
                  Pictures& pictures) {
  if (rows.empty()) return false;
  const bool shows = !rows.front().test.empty() || std::isfinite(rows.back().epsilon);
  if (shows) pictures.start(script(rows, title, metric), picture, mode);
  return true;
}

}  // namespace cudp
