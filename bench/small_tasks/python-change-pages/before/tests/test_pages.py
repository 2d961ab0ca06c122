import unittest

from pages import pages


class PagesTest(unittest.TestCase):
    def test_full_pages(self):
        self.assertEqual(pages([1, 2, 3, 4], 2), [[1, 2], [3, 4]])

    def test_last_page_is_not_full(self):
        self.assertEqual(pages([1, 2, 3], 2), [[1, 2], [3]])

    def test_no_items(self):
        self.assertEqual(pages([], 2), [])


unittest.main()
