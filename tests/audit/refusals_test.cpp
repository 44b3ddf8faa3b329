// A training that is refused says and leaves the same on any rows: every method, for every reason
// that is found once rows were read, on data that differ in their rows, and in how many there are.
// What was released before the refusal, the noisy number of rows, is put in place of what the other
// rows would have given, as in non_interference_test.cpp.
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/methods/registry.hpp"
#include "tests/audit/seen_training.hpp"

namespace cudp {
namespace {

using namespace neighbours;

struct Reason {
  const char* name;
  Kind kind;
  std::vector<std::string> flags;
};

const Arguments kLogistic = {"--model", "logistic"};
const Arguments kHoldout = {"--holdout", "0.3", "--holdout-delta", "1e-6"};

std::vector<Reason> reasons() {
  return {
      {"batch_above_the_noisy_number_of_rows", Kind::table, with(kLogistic, {"--batch", "5000"})},
      {"too_little_for_the_number_of_rows", Kind::table, with(kLogistic, {"--epsilon", "1e-4"})},
      {"noise_that_cannot_be_paid", Kind::table,
       with(kLogistic, {"--sigma", "0.1", "--batch", "64"})},
      {"too_little_for_held_out_rows", Kind::table,
       with(kLogistic, with(kHoldout, {"--holdout-epsilon", "1e-5"}))},
      {"held_out_rows_beside_test_rows", Kind::table,
       with(kLogistic, {"--holdout", "0.3", "--test-data", "test.csv"})},
      {"more_components_than_numbers", Kind::table,
       with(kLogistic, {"--features", "pca", "--feature-dimensions", "77"})},
      {"weights_of_other_classes", Kind::table, with(kLogistic, {"--class-weights", "1,2,3"})},
      {"a_model_of_images", Kind::table, {"--model", "cnn"}},
      {"a_loss_of_targets", Kind::table, with(kLogistic, {"--loss", "huber"})},
      {"test_rows_of_other_columns", Kind::table, with(kLogistic, {"--test-data", "notes.csv"})},
      {"test_rows_of_the_training_file", Kind::table,
       with(kLogistic, {"--test-data", "people.csv"})},
      {"units_of_several_rows", Kind::units, with(kLogistic, {"--batch", "20", "--epochs", "1"})},
      {"a_matrix_of_unknown_classes", Kind::matrix, kLogistic},
      {"texts_that_are_normalised",
       Kind::texts,
       {"--vocabulary", "words.txt", "--vocabulary-is-public", "--normalise", "unit"}},
      {"images_that_are_normalised", Kind::images, {"--normalise", "unit"}},
      {"groups_of_other_channels",
       Kind::images,
       {"--features", "scatter", "--feature-groups", "7"}},
  };
}

class Refusals : public testing::TestWithParam<std::size_t> {};

TEST_P(Refusals, SayAndLeaveTheSameOnOtherRows) {
  const Reason reason = reasons()[GetParam()];
  const Way once{"to_the_end", {{}}};
  int refused = 0;
  for (const std::string& method : method_names()) {
    if (method == "sgd") continue;  // without privacy
    const Case c{.name = reason.name,
                 .kind = reason.kind,
                 .flags = with(reason.flags, {"--method", method}),
                 .exit = 2};
    SCOPED_TRACE(std::string(reason.name) + ", " + method);
    SeenTraining training(c, once);
    const Seen expected = training.on(data_of(c), images(), false);
    if (expected.exits.back() == 0) continue;
    ++refused;
    EXPECT_NE(expected.err, "");
    for (const Change& change : kChanges) {
      const std::string name = change.name;
      if (name != "last_row_removed" && name != "no_rows") continue;
      Rows rows = data_of(c);
      Images pictures = images();
      change.rows(rows);
      change.pictures(pictures);
      fs::remove(training.position());
      const Seen seen = training.on(rows, pictures, true);
      EXPECT_EQ(training.differences(), "") << name;
      EXPECT_EQ(seen.exits, expected.exits) << name;
      EXPECT_EQ(seen.out, expected.out) << name;
      EXPECT_EQ(seen.err, expected.err) << name;
      EXPECT_EQ(seen.files, expected.files) << name;
    }
  }
  EXPECT_GT(refused, 0);
}

INSTANTIATE_TEST_SUITE_P(All, Refusals, testing::Range<std::size_t>(0, reasons().size()),
                         [](const auto& info) { return std::string(reasons()[info.param].name); });

}  // namespace
}  // namespace cudp
