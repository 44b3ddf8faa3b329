#include "runtime/audit/picture.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <spdlog/fmt/fmt.h>

#include "runtime/base/gnuplot.hpp"

namespace cudp {
namespace {

/// Returns the cumulative distribution of the scores of members (or of non-members) as gnuplot
/// data.
std::string distribution(const AuditResult& r, const char* name, bool member) {
  std::vector<double> scores;
  for (const auto& [score, in] : r.scores)
    if (in == member) scores.push_back(score);
  std::ranges::sort(scores);
  std::string s = fmt::format("{} << EOD\n", name);
  for (std::size_t i = 0; i < scores.size(); ++i)
    s += fmt::format("{} {}\n", scores[i],
                     (static_cast<double>(i) + 0.5) / static_cast<double>(scores.size()));
  return s + "EOD\n";
}

std::string bars(const AuditResult& r) {
  std::vector<std::pair<const char*, double>> rows{{"certificate", r.epsilon},
                                                   {"shown: any\\nmechanism", r.any},
                                                   {"shown:\\nGaussian", r.gaussian}};
  if (r.own) rows.emplace_back("shown: these\\nreleases", *r.own);
  std::string s = "$bars << EOD\n";
  for (const auto& [name, value] : rows) s += fmt::format("\"{}\" {}\n", name, value);
  return s + "EOD\n";
}

std::string script(const AuditResult& r) {
  return gnuplot_header("", {.width = 1100, .height = 520}) + distribution(r, "$in", true) +
         distribution(r, "$out", false) + bars(r) +
         fmt::format(R"(unset title
set multiplot layout 1,2
set title 'Scores of {} canaries'
set bmargin 4
# At high scores both curves are near 1, which leaves this corner free.
set key inside bottom right
set xlabel 'score'
set ylabel 'share of canaries with a lower score'
set yrange [0:1]
plot $out using 1:2 with lines lt 1 title 'not in the training set', \
     $in using 1:2 with lines lt 2 title 'in the training set'
set title 'Epsilon at delta {:g}'
unset key
unset xlabel
set ylabel 'epsilon'
set grid noxtics
set xrange [-0.6:{}.6]
set yrange [0:{}]
set style fill solid 0.8
set boxwidth 0.6
plot $bars using 0:2:xtic(1) with boxes lt 1 lw 1, \
     $bars using 0:2:(sprintf('%.2f', $2)) with labels offset 0,0.7
unset multiplot
)",
                     *r.settings.canaries, r.delta, r.own ? 3 : 2, 1.1 * std::max(r.epsilon, 0.01));
}

}  // namespace

bool draw_audit(const AuditResult& result, const std::filesystem::path& picture) {
  return run_gnuplot(script(result), picture, 0600);
}

}  // namespace cudp
