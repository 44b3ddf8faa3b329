#include "runtime/results/curves.hpp"

#include <cmath>
#include <string>

#include <spdlog/fmt/fmt.h>

#include "runtime/base/gnuplot.hpp"

namespace cudp {
namespace {

std::string script(const std::vector<MetricsRow>& rows, const std::string& title) {
  std::string s = gnuplot_header(title) + R"(set key bottom right
set xlabel 'epoch'
set xrange [0:*]
)";
  const bool tested = !rows.front().test.empty();
  const bool target = rows.front().test.says == Says::target;
  const std::string what = target ? "test RMSE" : "test accuracy";
  const std::string axis = target ? what : what + " (%)";
  const bool is_private = std::isfinite(rows.back().epsilon);
  const char* const epsilon = rows.back().training_epsilon ? "epsilon of training" : "epsilon";
  s += "$rows << EOD\n";
  for (const MetricsRow& r : rows)
    s += fmt::format("{} {} {}\n", r.epoch, (target ? 1.0 : 100.0) * r.test.first().value_or(0.0),
                     is_private ? r.spent_by_training() : 0.0);
  s += "EOD\n";
  const char* style = rows.size() > 1 ? "lines" : "points";
  if (!tested)
    return s + fmt::format(
                   "set ylabel 'epsilon spent'\nset yrange [0:*]\n"
                   "plot $rows using 1:3 with {} lw 2 lc rgb '#dd5511' title '{}'\n",
                   style, epsilon);
  if (!is_private)
    return s + fmt::format(
                   "set ylabel '{1}'\n"
                   "plot $rows using 1:2 with {0} lw 2 lc rgb '#0060ad' title '{2}'\n",
                   style, axis, what);
  s += "set y2tics\nset ylabel '" + axis + "'\nset y2label 'epsilon spent'\nset y2range [0:*]\n";
  s += fmt::format(
      "plot $rows using 1:2 with {0} lw 2 lc rgb '#0060ad' title '{1}', "
      "$rows using 1:3 axes x1y2 with {0} lw 2 dt 2 lc rgb '#dd5511' title '{2}'\n",
      style, what, epsilon);
  return s;
}

}  // namespace

bool draw_curves(const std::vector<MetricsRow>& rows, const std::string& title,
                 const std::filesystem::path& picture, unsigned mode) {
  if (rows.empty()) return false;
  if (rows.front().test.empty() && !std::isfinite(rows.back().epsilon))
    return true;  // nothing to show
  return run_gnuplot(script(rows, title), picture, mode);
}

}  // namespace cudp
