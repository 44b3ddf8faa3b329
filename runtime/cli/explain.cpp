#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/cli/run_certificate.hpp"
#include "runtime/report/sentences.hpp"

namespace cudp {

Answer explained(const std::string& run) {
  const NamedCertificate c = read_run_certificate(run);
  const std::vector<Sentences> all = sentences_of(c);
  Answer answer;
  answer.json = {
      {"certificate", c.file.string()}, {"epsilon", c.stated.epsilon}, {"delta", c.stated.delta}};
  if (c.stated.holdout || c.stated.tuning) {
    answer.json["training_epsilon"] = c.stated.training_epsilon;
    answer.json["training_delta"] = c.stated.training_delta;
  }
  std::size_t width = 0;
  for (const Sentences& p : all) width = std::max(width, p.heading.size());
  for (const Sentences& p : all) {
    answer.json[p.heading] = p.sentences;
    for (std::size_t i = 0; i < p.sentences.size(); ++i)
      add_wrapped(answer, i == 0 ? p.heading : "", p.sentences[i], width);
  }
  return answer;
}

}  // namespace cudp
