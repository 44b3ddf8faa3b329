#include "runtime/data/glyph_shapes.hpp"

namespace cudp {
namespace {

constexpr Point kZeroRing[] = {{0.0, -1.0}, {-0.48, -0.7}, {-0.6, 0.0},  {-0.48, 0.7}, {0.0, 1.0},
                               {0.48, 0.7}, {0.6, 0.0},    {0.48, -0.7}, {0.0, -1.0}};
constexpr PenStroke kZero[] = {{kZeroRing, true}};

constexpr Point kOneStem[] = {{-0.35, -0.55}, {0.08, -1.0}, {0.08, 1.0}};
constexpr PenStroke kOne[] = {{kOneStem, false}};

constexpr Point kTwoHook[] = {{-0.55, -0.55}, {-0.32, -0.9}, {0.08, -1.0}, {0.46, -0.78},
                              {0.5, -0.35},   {0.22, 0.15},  {-0.2, 0.58}, {-0.6, 1.0}};
constexpr Point kTwoBase[] = {{-0.6, 1.0}, {0.62, 1.0}};
constexpr PenStroke kTwo[] = {{kTwoHook, true}, {kTwoBase, false}};

constexpr Point kThreeUpper[] = {
    {-0.5, -0.8}, {0.0, -1.0}, {0.45, -0.75}, {0.4, -0.3}, {-0.1, -0.05}};
constexpr Point kThreeLower[] = {{-0.1, -0.05}, {0.42, 0.12}, {0.56, 0.55},
                                 {0.27, 0.92},  {-0.15, 1.0}, {-0.55, 0.75}};
constexpr PenStroke kThree[] = {{kThreeUpper, true}, {kThreeLower, true}};

constexpr Point kFourCorner[] = {{0.25, -1.0}, {-0.6, 0.35}, {0.68, 0.35}};
constexpr Point kFourStem[] = {{0.28, -0.3}, {0.28, 1.0}};
constexpr PenStroke kFour[] = {{kFourCorner, false}, {kFourStem, false}};

constexpr Point kFiveFlag[] = {{0.52, -1.0}, {-0.38, -1.0}, {-0.45, -0.15}};
constexpr Point kFiveBelly[] = {{-0.45, -0.15}, {0.0, -0.3}, {0.45, -0.05}, {0.56, 0.4},
                                {0.32, 0.85},   {-0.1, 1.0}, {-0.55, 0.8}};
constexpr PenStroke kFive[] = {{kFiveFlag, false}, {kFiveBelly, true}};

constexpr Point kSixCurl[] = {{0.4, -0.95}, {-0.05, -0.7}, {-0.42, -0.2}, {-0.52, 0.35},
                              {-0.3, 0.85}, {0.1, 1.0},    {0.48, 0.75},  {0.5, 0.3},
                              {0.2, 0.0},   {-0.2, 0.1},   {-0.48, 0.45}};
constexpr PenStroke kSix[] = {{kSixCurl, true}};

constexpr Point kSevenBend[] = {{-0.56, -1.0}, {0.6, -1.0}, {-0.12, 1.0}};
constexpr PenStroke kSeven[] = {{kSevenBend, false}};

constexpr Point kEightLoops[] = {{0.0, -0.08},  {-0.42, -0.38}, {-0.38, -0.82}, {0.0, -1.0},
                                 {0.38, -0.82}, {0.42, -0.38},  {0.0, -0.08},   {-0.5, 0.28},
                                 {-0.48, 0.78}, {0.0, 1.0},     {0.48, 0.78},   {0.5, 0.28},
                                 {0.0, -0.08}};
constexpr PenStroke kEight[] = {{kEightLoops, true}};

constexpr Point kNineLoop[] = {{0.5, -0.45},   {0.2, -0.06}, {-0.2, -0.02}, {-0.5, -0.3},
                               {-0.48, -0.75}, {-0.1, -1.0}, {0.32, -0.85}, {0.52, -0.35},
                               {0.46, 0.2},    {0.3, 1.0}};
constexpr PenStroke kNine[] = {{kNineLoop, true}};

constexpr std::span<const PenStroke> kDigitStrokes[10] = {kZero, kOne, kTwo,   kThree, kFour,
                                                          kFive, kSix, kSeven, kEight, kNine};

}  // namespace

std::span<const PenStroke> digit_strokes(int digit) { return kDigitStrokes[digit]; }

}  // namespace cudp
