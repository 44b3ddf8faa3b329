#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "privacy/text/json_text.hpp"
#include "privacy/verify/method_kinds.hpp"
#include "privacy/verify/released.hpp"
#include "privacy/verify/settings.hpp"
#include "privacy/verify/stated_numbers.hpp"

namespace cudp::verify {

std::vector<std::string> taken_on_trust(const Evidence& evidence) {
  const StatedNumbers c = read_stated_numbers(evidence.certificate);
  const Kinds kinds = kinds_of(c);
  std::vector<std::string> all = {
      "that noise was drawn as stated, once for each release",
      "that the run was made by the named program (build) from the named rows (dataset)",
      "the assumptions, and that no setting was chosen by looking at other runs on the same rows" +
          std::string(c.tuning ? ", other than by the tuning" : "")};
  if (c.tuning)
    all.emplace_back(
        "that the number of trainings and the candidates were drawn as stated, and "
        "nothing of trainings that are not released was published");
  const Settings settings(evidence.settings);
  if (settings.has("init"))
    all.emplace_back("that no row decided the initial weights, whose file the certificate names");
  if (c.status == "finished" && kinds.engine)
    all.emplace_back(
        "how much rounding adds to the bound on a row's part, within what the model's size allows");
  if (c.status == "finished" && c.method == "outpert")
    all.emplace_back("the sensitivity that rounding adds");
  const auto json = privacy::parse_json(evidence.certificate);
  if (settings.has("accept-private-bounds") && settings.is_on("accept-private-bounds") &&
      json.value("unsafe_flags", nlohmann::json::array()).empty())
    all.emplace_back(
        "that the schema was complete: accept-private-bounds allowed the run to read bounds, "
        "categories and classes from private rows");
  if (c.examples)
    all.emplace_back("that the row count is public, and its value");
  else
    all.emplace_back("the noisy row count itself");
  if (c.method == "dpis")
    all.emplace_back(
        "that rates and noise of DPIS's epochs follow from its noisy sums of norms; their epsilon "
        "is "
        "recomputed");
  if (c.method == "dp-agd")
    all.emplace_back(
        "how often and when DP-AGD measured a gradient again, which follows from its choices");
  if (c.method == "dpsgd-quantile")
    all.emplace_back("the last clipping norm, which follows from noisy counts");
  if (c.lost_a_key())
    all.emplace_back(
        "how often a key was lost, after which steps, and the rows before: that is in the private "
        "ledger");
  if (c.holdout && c.holdout->releases > 0)
    all.emplace_back("the noisy figures of held-out rows themselves");
  if (c.test_set.starts_with("public"))
    all.emplace_back("figures of test rows, and that these are public");
  all.emplace_back(
      "that no row is in the texts that the user wrote (names of the data, columns, classes and "
      "words, layers, the front matter of README.md), nor in pixels of pictures");
  if (evidence.ledger.empty())
    all.emplace_back(
        "that the noise's key was never lost without a second charge, as the owner's private "
        "ledger would show");
  return all;
}

}  // namespace cudp::verify
