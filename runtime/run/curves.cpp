#include <string>

#include <spdlog/fmt/fmt.h>

#include "runtime/gnuplot.hpp"
#include "runtime/run/metrics.hpp"

namespace cudp {
namespace {

std::string script(const std::vector<MetricsRow>& rows, const std::string& title,
                   const std::filesystem::path& picture) {
  std::string s = gnuplot_header(title, picture) + R"(set key bottom right
set y2tics
set xlabel 'epoch'
set ylabel 'test accuracy (%)'
set y2label 'epsilon spent'
set xrange [0:*]
set y2range [0:*]
)";
  s += "$rows << EOD\n";
  for (const MetricsRow& r : rows)
    s += fmt::format("{} {} {}\n", r.epoch, 100.0 * r.test_accuracy, r.epsilon);
  s += "EOD\n";
  const char* style = rows.size() > 1 ? "lines" : "points";
  s += fmt::format(
      "plot $rows using 1:2 with {0} lw 2 lc rgb '#0060ad' title 'test accuracy', "
      "$rows using 1:3 axes x1y2 with {0} lw 2 dt 2 lc rgb '#dd5511' title 'epsilon'\n",
      style);
  return s;
}

}  // namespace

bool draw_curves(const std::vector<MetricsRow>& rows, const std::string& title,
                 const std::filesystem::path& picture) {
  if (rows.empty()) return false;
  return run_gnuplot(script(rows, title, picture), picture);
}

}  // namespace cudp
