import unittest

from temperature import celsius, fahrenheit


class TemperatureTest(unittest.TestCase):
    def test_celsius(self):
        self.assertEqual(celsius(100), 37.8)

    def test_fahrenheit(self):
        self.assertEqual(fahrenheit(37.8), 100.0)


unittest.main()
