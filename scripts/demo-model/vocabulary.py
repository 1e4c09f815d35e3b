"""The words and facts that the demo model's corpus is made of."""

NAMES = "Mia Tom Lily Ben Anna Sam Leo Zoe Max Ella Finn Nora Otto Ruby Hugo Ivy".split()
ANIMALS = "fox cat dog owl bear mouse frog duck rabbit turtle hen pig goat horse lion bee".split()
ADJ = "small big brave shy happy sleepy clever kind funny quiet curious gentle".split()
PLACES = ["forest", "garden", "river", "hill", "village", "lake", "beach", "farm", "cave", "meadow"]
THINGS = [
    "red ball",
    "blue kite",
    "gold coin",
    "warm hat",
    "tiny boat",
    "old map",
    "shiny stone",
    "sweet apple",
    "wooden flute",
    "round drum",
]
FRUITS = "apple banana cherry grape lemon mango orange peach pear plum".split()
COLORS = "red blue green yellow orange purple black white brown pink".split()
WORDS = sorted(
    set(
        ANIMALS
        + FRUITS
        + COLORS
        + PLACES
        + (
            "book chair table house window door cloud river stone paper water light music piano guitar "
            "train plane bread butter sugar spoon plate candle mirror pocket button ladder hammer "
            "basket blanket castle bridge island desert winter summer autumn spring"
        ).split()
    )
)
CAPITALS = {
    "France": "Paris",
    "Japan": "Tokyo",
    "Germany": "Berlin",
    "Italy": "Rome",
    "Spain": "Madrid",
    "China": "Beijing",
    "Egypt": "Cairo",
    "Canada": "Ottawa",
    "Brazil": "Brasilia",
    "India": "New Delhi",
    "Norway": "Oslo",
    "Sweden": "Stockholm",
    "Greece": "Athens",
    "Portugal": "Lisbon",
    "Austria": "Vienna",
    "Poland": "Warsaw",
    "Kenya": "Nairobi",
    "Peru": "Lima",
    "Cuba": "Havana",
    "Finland": "Helsinki",
}
CAPITALS_ZH = {
    "法国": "巴黎",
    "日本": "东京",
    "德国": "柏林",
    "意大利": "罗马",
    "中国": "北京",
    "埃及": "开罗",
    "西班牙": "马德里",
    "印度": "新德里",
}
SOUNDS = {
    "cat": "meow",
    "dog": "woof",
    "cow": "moo",
    "duck": "quack",
    "sheep": "baa",
    "pig": "oink",
    "bee": "buzz",
    "owl": "hoot",
    "frog": "ribbit",
    "lion": "roar",
    "hen": "cluck",
    "horse": "neigh",
}
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = "January February March April May June July August September October November December".split()
CITIES = sorted(set(CAPITALS.values()))
